/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Compiler-dependent definitions, the same for BPF and native builds.
 *
 * The BPF verifier follows every path and must prove that it ends and that no access leaves the state.
 * The means for that are macros that cost nothing natively:
 *
 * SW_LOOP bounds a loop twice, by a constant and by `can_loop`, which the kernel ends after some
 * millions of iterations. SW_ZERO is a zero whose value the verifier does not know: loop-carried scalars
 * start from it, so that the verifier's state after the second iteration equals that after the first, and
 * it stops. SW_ROLLED keeps clang from unrolling the loop that follows: loading takes time for each instruction. SW_HIDE keeps clang from dropping the mask of an index that is small to clang's knowledge but
 * not to the verifier's.
 */
#ifndef SW_BASE_H
#define SW_BASE_H

typedef unsigned long long sw_u64;
typedef long long sw_s64;
typedef unsigned int sw_u32;
typedef int sw_s32;
typedef unsigned short sw_u16;
typedef unsigned char sw_u8;

/* Maximum numbers of CPUs and tasks: a word of CPUs, and a power of two of tasks. */
#define SW_CPUS 64
#define SW_TASKS 1024
/* The same of mutexes, and of those that a job unlocks at one instant. Powers of two. */
#define SW_MUTEXES 256
#define SW_UNLOCKS 4

#define SW_NEVER (~0ULL)

/*
 * Functions are inlined (SW_IN) or not (SW_FN). The verifier allows eight frames: no chain of calls in
 * the core is longer than six functions, which leaves the caller a program and a function of its own; of
 * mutexes than seven, which leaves a program.
 */
#define SW_IN static inline __attribute__((always_inline, unused))

#ifdef __bpf__

/*
 * A global function is verified once, on its own; with SW_GLOBAL that makes loading much cheaper, but
 * such functions may not be called under a bpf_spin_lock.
 */
#ifdef SW_GLOBAL
#define SW_FN __attribute__((noinline))
#define SW_NONNULL __attribute__((btf_decl_tag("arg:nonnull")))
#else
#define SW_FN static __attribute__((noinline, unused))
#define SW_NONNULL
#endif

#ifndef can_loop
#define can_loop						\
	({							\
		__label__ exhausted, decided;			\
		int may = 1;					\
		asm volatile goto("may_goto %l[exhausted]"	\
				  :::: exhausted);		\
		goto decided;					\
	exhausted:						\
		may = 0;					\
	decided:						\
		may;						\
	})
#endif

#define SW_LOOP(i, n) for (i = SW_ZERO(s); i < (n) && can_loop; i++)
#define SW_ROLLED _Pragma("clang loop unroll(disable)")
#define SW_HIDE(x) asm volatile("" : "+r"(x))
#define SW_ZERO(s) (*(volatile sw_u64 *)&(s)->zero)

#else

#define SW_FN static __attribute__((unused))
#define SW_NONNULL
#define SW_LOOP(i, n) for (i = 0; i < (n); i++)
#define SW_ROLLED
#define SW_HIDE(x) ((void)0)
#define SW_ZERO(s) ((void)(s), 0)

#endif

/* The first argument of every function that is not inlined. */
#define SW_CORE struct sw_core *s SW_NONNULL

SW_IN sw_u64 sw_bit(sw_u64 cpu)
{
	return 1ULL << (cpu & (SW_CPUS - 1));
}

/* The lowest CPU of a set that is not empty. */
#ifdef __bpf__
/* BPF has no instruction for it: a de Bruijn sequence maps a single bit to its number. */
static const sw_u8 sw_debruijn[64] = {
	0,  1,	2,  53, 3,  7,	54, 27, 4,  38, 41, 8,	34, 55, 48, 28,
	62, 5,	39, 46, 44, 42, 22, 9,	24, 35, 59, 56, 49, 18, 29, 11,
	63, 52, 6,  26, 37, 40, 33, 47, 61, 45, 43, 21, 23, 58, 17, 10,
	51, 25, 36, 32, 60, 20, 57, 16, 50, 31, 19, 15, 30, 14, 13, 12,
};

SW_IN sw_u32 sw_lowest(sw_u64 set)
{
	return sw_debruijn[((set & -set) * 0x022fdd63cc95386dULL) >> 58];
}
#else
SW_IN sw_u32 sw_lowest(sw_u64 set)
{
	return __builtin_ctzll(set);
}
#endif

/* A product of two words. There is no wider integer type in BPF. */
struct sw_wide {
	sw_u64 high, low;
};

SW_IN struct sw_wide sw_multiply(sw_u64 a, sw_u64 b)
{
	sw_u64 a0 = a & 0xffffffff, a1 = a >> 32;
	sw_u64 b0 = b & 0xffffffff, b1 = b >> 32;
	sw_u64 low = a0 * b0;
	sw_u64 middle = a1 * b0 + (low >> 32);
	sw_u64 cross = a0 * b1 + (middle & 0xffffffff);
	struct sw_wide product = {
		.high = a1 * b1 + (middle >> 32) + (cross >> 32),
		.low = (cross << 32) | (low & 0xffffffff),
	};

	return product;
}

/* Whether a * b > c * d, exactly. */
SW_IN int sw_product_exceeds(sw_u64 a, sw_u64 b, sw_u64 c, sw_u64 d)
{
	struct sw_wide x = sw_multiply(a, b), y = sw_multiply(c, d);

	return x.high > y.high || (x.high == y.high && x.low > y.low);
}

#endif
