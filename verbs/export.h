#ifndef VERBS_EXPORT_H_
#define VERBS_EXPORT_H_

// Everything is compiled hidden; this marks what libibverbs.map then assigns to a version node.
#define WEFT_VERBS_API extern "C" __attribute__((visibility("default"), used))

// Makes `function` the symbol `name` at the node `node` (a string) for programs that were linked long ago; new programs
// do not see it. The assembler directive, not the attribute, because clang has no such attribute.
#define WEFT_VERBS_OLD_SYMBOL(function, name, node) __asm__(".symver " #function "," #name "@" node)

#endif  // VERBS_EXPORT_H_
