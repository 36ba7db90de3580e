#include "textflag.h"

// Multiplication without carries folds 16 bytes of a message into those a distance after them (V. Gopal and others,
// "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009). For a distance of d bits the
// constants are x^(d+32) and x^(d-32) modulo the polynomial of Ethernet, in reflected order.

// Distances of 256, 192, 128 and 64 bytes.
DATA by256<>+0(SB)/8, $0x11542778a
DATA by256<>+8(SB)/8, $0x1322d1430
GLOBL by256<>(SB), RODATA|NOPTR, $16
DATA by192<>+0(SB)/8, $0x1821d8bc0
DATA by192<>+8(SB)/8, $0x12e958ac4
GLOBL by192<>(SB), RODATA|NOPTR, $16
DATA by128<>+0(SB)/8, $0x1e88ef372
DATA by128<>+8(SB)/8, $0x14a7fe880
GLOBL by128<>(SB), RODATA|NOPTR, $16
DATA by64<>+0(SB)/8, $0x154442bd4
DATA by64<>+8(SB)/8, $0x1c6e41596
GLOBL by64<>(SB), RODATA|NOPTR, $16

// Distances of the first three quarters of 64 bytes to the last: 48, 32 and 16 bytes. The last one stays.
DATA lanes<>+0(SB)/8, $0x03db1ecdc
DATA lanes<>+8(SB)/8, $0x174359406
DATA lanes<>+16(SB)/8, $0x0f1da05aa
DATA lanes<>+24(SB)/8, $0x15a546366
DATA lanes<>+32(SB)/8, $0x1751997d0
DATA lanes<>+40(SB)/8, $0x0ccaa009e
DATA lanes<>+48(SB)/8, $0
DATA lanes<>+56(SB)/8, $0
GLOBL lanes<>(SB), RODATA|NOPTR, $64

// 64 bits to 32, and Barrett's reduction: the polynomial, and its reciprocal.
DATA by4<>+0(SB)/8, $0x163cd6124
DATA by4<>+8(SB)/8, $0
GLOBL by4<>(SB), RODATA|NOPTR, $16
DATA barrett<>+0(SB)/8, $0x1db710641
DATA barrett<>+8(SB)/8, $0x1f7011641
GLOBL barrett<>(SB), RODATA|NOPTR, $16

// FOLD moves Z by the distance K and adds what is there. It uses T.
#define FOLD(K, Z, T, THERE) \
	VPCLMULQDQ $0x11, K, Z, T; \
	VPCLMULQDQ $0x00, K, Z, Z; \
	VPTERNLOGD $0x96, THERE, T, Z

// func fold(p *byte, n int, register uint32) uint32
TEXT ·fold(SB), NOSPLIT|NOFRAME, $0-28
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVL register+16(FP), AX
	VMOVD AX, X0
	VPXORD (SI), Z0, Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	ADDQ $256, SI
	SUBQ $256, CX
	CMPQ CX, $256
	JB one
	VBROADCASTI32X4 by256<>(SB), Z8
four:
	FOLD(Z8, Z0, Z4, (SI))
	FOLD(Z8, Z1, Z5, 64(SI))
	FOLD(Z8, Z2, Z6, 128(SI))
	FOLD(Z8, Z3, Z7, 192(SI))
	ADDQ $256, SI
	SUBQ $256, CX
	CMPQ CX, $256
	JAE four
one:
	// The four runs become one.
	VBROADCASTI32X4 by192<>(SB), Z8
	VBROADCASTI32X4 by128<>(SB), Z9
	VBROADCASTI32X4 by64<>(SB), Z10
	FOLD(Z8, Z0, Z4, Z3)
	FOLD(Z9, Z1, Z5, Z0)
	FOLD(Z10, Z2, Z6, Z1)
	JMP more
again:
	FOLD(Z10, Z2, Z6, (SI))
	ADDQ $64, SI
	SUBQ $64, CX
more:
	CMPQ CX, $64
	JAE again
	// 64 bytes become 16.
	VMOVDQU64 lanes<>(SB), Z8
	VEXTRACTI32X4 $3, Z2, X0
	VPCLMULQDQ $0x11, Z8, Z2, Z4
	VPCLMULQDQ $0x00, Z8, Z2, Z2
	VPXORD Z4, Z2, Z2
	VEXTRACTI64X4 $1, Z2, Y3
	VPXOR Y3, Y2, Y2
	VEXTRACTI128 $1, Y2, X3
	VPXOR X3, X2, X2
	VPXOR X0, X2, X2
	VMOVDQU lanes<>+32(SB), X8
rest:
	CMPQ CX, $16
	JB reduce
	VPCLMULQDQ $0x11, X8, X2, X3
	VPCLMULQDQ $0x00, X8, X2, X2
	VPXOR (SI), X3, X3
	VPXOR X3, X2, X2
	ADDQ $16, SI
	SUBQ $16, CX
	JMP rest
reduce:
	VPCLMULQDQ $0x10, X8, X2, X3 // the lower half by 12 bytes
	VPSRLDQ $8, X2, X2
	VPXOR X3, X2, X2
	VMOVDQU by4<>(SB), X0
	VPCMPEQD X1, X1, X1
	VPSRLDQ $12, X1, X1
	VPAND X1, X2, X3
	VPCLMULQDQ $0x00, X0, X3, X3
	VPSRLDQ $4, X2, X2
	VPXOR X3, X2, X2
	VMOVDQU barrett<>(SB), X0
	VPAND X1, X2, X3
	VPCLMULQDQ $0x10, X0, X3, X3
	VPAND X1, X3, X3
	VPCLMULQDQ $0x00, X0, X3, X3
	VPXOR X3, X2, X2
	VPEXTRD $1, X2, AX
	VZEROUPPER
	MOVL AX, ret+24(FP)
	RET
