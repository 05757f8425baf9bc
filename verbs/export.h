#ifndef VERBS_EXPORT_H_
#define VERBS_EXPORT_H_

// Everything is compiled hidden; this marks what libibverbs.map then assigns to a version node.
#define WEFT_VERBS_API extern "C" __attribute__((visibility("default"), used))

// Symbols of several nodes, or of a node that libibverbs.map does not name: each follows the definition of `function`, which has a name of its own.
// GCC's attribute is what survives optimization over all files at once; clang has the assembler's directive only.
#if defined(__clang__)
#define WEFT_SYMVER(function, symbol) ".symver " #function "," symbol "\n"
#define WEFT_AND
#define WEFT_SYMVERS(function, ...) __asm__(__VA_ARGS__)
#else
#define WEFT_SYMVER(function, symbol) __symver__(symbol)
#define WEFT_AND ,
#define WEFT_SYMVERS(function, ...) extern "C" __typeof__(function) function __attribute__((__VA_ARGS__))
#endif

// `name` at `node` (a string), for programs that were linked long ago; new programs do not see it.
#define WEFT_VERBS_OLD_SYMBOL(function, name, node) WEFT_SYMVERS(function, WEFT_SYMVER(function, #name "@" node))

// `name` at `node`, for which new programs are linked: what rdma-core's headers declare with structures that the headers of this build may lack
// or have.
#define WEFT_VERBS_SYMBOL(function, name, node) WEFT_SYMVERS(function, WEFT_SYMVER(function, #name "@@" node))

// The node of rdma-core's own libraries has the number of the release in which their ABI changed last: 34 (releases 34 to 56), 57, 59, 64, 65. A name
// stands at each from the node on that had it first.
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
