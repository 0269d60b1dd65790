/* A library that calls mcount and __fentry__ with every register full, and looks what is left of them. It is loaded
 * late, so that its first calls take the slowest path there is. registers_check returns a set of bits: what was lost.
 */
#include <stdint.h>
#include <string.h>

struct state {
    uint64_t general[9]; /* rax rcx rdx rsi rdi r8 r9 rbx r12 */
    uint64_t mask[8];    /* k0 … k7 */
    uint8_t vector[32][64];
    long double x87;
};

#define PROBE(NAME, TARGET)                                                                                            \
    void NAME(const struct state *in, struct state *out, long level);                                                  \
    void TARGET(void);                                                                                                 \
    __asm__(".text\n.globl " #NAME "\n.type " #NAME ",@function\n" #NAME ":\n"                                         \
            "push %rbp\n mov %rsp, %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n push %r15\n"     \
            "mov %rdi, %r13\n mov %rsi, %r14\n mov %rdx, %r15\n"                                                       \
            "fldt 2192(%r13)\n"                                                                                        \
            "cmp $2, %r15\n jl 1f\n"                                                                                   \
            "kmovw 72(%r13), %k0\n kmovw 80(%r13), %k1\n kmovw 88(%r13), %k2\n kmovw 96(%r13), %k3\n"                  \
            "kmovw 104(%r13), %k4\n kmovw 112(%r13), %k5\n kmovw 120(%r13), %k6\n kmovw 128(%r13), %k7\n"              \
            ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"           \
            "vmovdqu64 136+64*\\n(%r13), %zmm\\n\n.endr\n jmp 3f\n"                                                    \
            "1: cmp $1, %r15\n jl 2f\n"                                                                                \
            ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n vmovdqu 136+64*\\n(%r13), %ymm\\n\n.endr\n jmp 3f\n"       \
            "2: .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n movdqu 136+64*\\n(%r13), %xmm\\n\n.endr\n"              \
            "3: mov (%r13), %rax\n mov 8(%r13), %rcx\n mov 16(%r13), %rdx\n mov 24(%r13), %rsi\n"                      \
            "mov 32(%r13), %rdi\n mov 40(%r13), %r8\n mov 48(%r13), %r9\n mov 56(%r13), %rbx\n mov 64(%r13), %r12\n"   \
            "call " #TARGET "\n"                                                                                       \
            "mov %rax, (%r14)\n mov %rcx, 8(%r14)\n mov %rdx, 16(%r14)\n mov %rsi, 24(%r14)\n"                         \
            "mov %rdi, 32(%r14)\n mov %r8, 40(%r14)\n mov %r9, 48(%r14)\n mov %rbx, 56(%r14)\n mov %r12, 64(%r14)\n"   \
            "cmp $2, %r15\n jl 1f\n"                                                                                   \
            "kmovw %k0, 72(%r14)\n kmovw %k1, 80(%r14)\n kmovw %k2, 88(%r14)\n kmovw %k3, 96(%r14)\n"                  \
            "kmovw %k4, 104(%r14)\n kmovw %k5, 112(%r14)\n kmovw %k6, 120(%r14)\n kmovw %k7, 128(%r14)\n"              \
            ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"           \
            "vmovdqu64 %zmm\\n, 136+64*\\n(%r14)\n.endr\n jmp 3f\n"                                                    \
            "1: cmp $1, %r15\n jl 2f\n"                                                                                \
            ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n vmovdqu %ymm\\n, 136+64*\\n(%r14)\n.endr\n jmp 3f\n"       \
            "2: .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n movdqu %xmm\\n, 136+64*\\n(%r14)\n.endr\n"              \
            "3: fstpt 2192(%r14)\n pop %r15\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n" \
            ".size " #NAME ", . - " #NAME "\n")

PROBE(probe_mcount, call_mcount);
PROBE(probe_fentry, call_fentry);
/* The forms in which compilers call: with a frame, the stack not aligned; and before there is a frame. */
__asm__(".text\n.globl call_mcount\n\n.type call_mcount,@function\ncall_mcount:\n"
        ".cfi_startproc\n push %rbp\n mov %rsp, %rbp\n sub $8, %rsp\n call *mcount@GOTPCREL(%rip)\n leave\n "
        "ret\n.cfi_endproc\n.size call_mcount, . - call_mcount\n"
        ".globl call_fentry\n\n.type call_fentry,@function\ncall_fentry:\n"
        ".cfi_startproc\n call *__fentry__@GOTPCREL(%rip)\n ret\n.cfi_endproc\n.size call_fentry, . - call_fentry\n"
#if defined MANY /* so many that they get no thunks */
        ".rept 600\n .cfi_startproc\n push %rbp\n mov %rsp, %rbp\n call *mcount@GOTPCREL(%rip)\n leave\n "
        "ret\n.cfi_endproc\n.endr\n"
#endif
);

static unsigned differs(const struct state *a, const struct state *b, long level)
{
    unsigned lost = 0;
    size_t width = level == 2 ? 64 : level == 1 ? 32 : 16;
    for (unsigned i = 0; i < 9; i++) {
        lost |= a->general[i] != b->general[i];
    }
    for (unsigned i = 0; i < 8 && level == 2; i++) {
        lost |= a->mask[i] != b->mask[i] ? 2u : 0u;
    }
    for (unsigned i = 0; i < (level == 2 ? 32u : 16u); i++) {
        lost |= memcmp(a->vector[i], b->vector[i], width) ? 4u : 0u;
    }
    return lost | (memcmp(&a->x87, &b->x87, 10) ? 8u : 0u);
}

unsigned registers_check(unsigned kind)
{
    static struct state in, out;
    long level = __builtin_cpu_supports("avx512f") ? 2 : __builtin_cpu_supports("avx2") ? 1 : 0;
    _Static_assert(sizeof(long double) == 16 && __builtin_offsetof(struct state, x87) == 2192,
                   "as the assembly has it");
    for (unsigned i = 0; i < 9; i++) {
        in.general[i] = 0x1111111111111111u * (i + 1);
    }
    for (unsigned i = 0; i < 8; i++) {
        in.mask[i] = 0x1235u + i;
    }
    for (unsigned i = 0; i < 32; i++) {
        for (unsigned j = 0; j < 64; j++) {
            in.vector[i][j] = (uint8_t)(i * 64 + j * 7 + 1);
        }
    }
    in.x87 = 3.25L;
    memset(&out, 0, sizeof out);
    (kind ? probe_fentry : probe_mcount)(&in, &out, level);
    return differs(&in, &out, level);
}
