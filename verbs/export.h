#ifndef VERBS_EXPORT_H_
#define VERBS_EXPORT_H_

// Exports a function (everything is compiled hidden). libibverbs.map then assigns it to a version node.
#define WEFT_VERBS_API extern "C" __attribute__((visibility("default"), used))

// Exports symbols at several nodes, or at a node that libibverbs.map does not name. Each follows the definition of
// `function`, which has a name of its own. GCC's attribute survives link-time optimization; clang has only the
// assembler's directive.
#if defined(__clang__)
#define WEFT_SYMVER(function, symbol) ".symver " #function "," symbol "\n"
#define WEFT_AND
#define WEFT_SYMVERS(function, ...) __asm__(__VA_ARGS__)
#else
#define WEFT_SYMVER(function, symbol) __symver__(symbol)
#define WEFT_AND ,
#define WEFT_SYMVERS(function, ...) extern "C" __typeof__(function) function __attribute__((__VA_ARGS__))
#endif

// `name` at `node` (a string), for programs linked long ago. New programs are not linked to it.
#define WEFT_VERBS_OLD_SYMBOL(function, name, node) WEFT_SYMVERS(function, WEFT_SYMVER(function, #name "@" node))

// `name` at `node`, which new programs are linked to. For functions whose structures in rdma-core's headers may or may
// not be known to the headers of this build.
#define WEFT_VERBS_SYMBOL(function, name, node) WEFT_SYMVERS(function, WEFT_SYMVER(function, #name "@@" node))

// The private node of rdma-core's own libraries has the number of the release in which their ABI last changed: 34
// (releases 34 to 56), 57, 59, 64, 65. A name is exported at each node from the first that had it.
#define WEFT_PRIVATE_SYMBOL_SINCE_34(function, name)                                       \
  WEFT_SYMVERS(function, WEFT_SYMVER(function, #name "@@IBVERBS_PRIVATE_34") WEFT_AND      \
                             WEFT_SYMVER(function, #name "@IBVERBS_PRIVATE_57") WEFT_AND   \
                             WEFT_SYMVER(function, #name "@IBVERBS_PRIVATE_59") WEFT_AND   \
                             WEFT_SYMVER(function, #name "@IBVERBS_PRIVATE_64") WEFT_AND   \
                             WEFT_SYMVER(function, #name "@IBVERBS_PRIVATE_65"))
#define WEFT_PRIVATE_SYMBOL_SINCE_59(function, name)                                       \
  WEFT_SYMVERS(function, WEFT_SYMVER(function, #name "@@IBVERBS_PRIVATE_59") WEFT_AND      \
                             WEFT_SYMVER(function, #name "@IBVERBS_PRIVATE_64") WEFT_AND   \
                             WEFT_SYMVER(function, #name "@IBVERBS_PRIVATE_65"))
#define WEFT_PRIVATE_SYMBOL_SINCE_64(function, name)                                       \
  WEFT_SYMVERS(function, WEFT_SYMVER(function, #name "@@IBVERBS_PRIVATE_64") WEFT_AND      \
                             WEFT_SYMVER(function, #name "@IBVERBS_PRIVATE_65"))
#define WEFT_PRIVATE_SYMBOL_SINCE_65(function, name) \
  WEFT_SYMVERS(function, WEFT_SYMVER(function, #name "@@IBVERBS_PRIVATE_65"))

#endif  // VERBS_EXPORT_H_
