#include "textflag.h"

// Multiplication without carries folds 16 bytes of a message into those a distance after them (V. Gopal and others,
// "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009). For a distance of d bits the
// constants are x^(d+32) and x^(d-32) modulo the polynomial of Ethernet, in reflected order. TestFoldConstants computes
// them anew.

// Distances of 256, 192, 128, 64 and 16 bytes.
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
DATA by16<>+0(SB)/8, $0x1751997d0
DATA by16<>+8(SB)/8, $0x0ccaa009e
GLOBL by16<>(SB), RODATA|NOPTR, $16

// The eight halves of lanes of the last 64 bytes become 12 bytes, of which the first bit is zero: the constants are x^480,
// x^416 and so on to x^32.
DATA last<>+0(SB)/8, $0x1c6e41596
DATA last<>+8(SB)/8, $0x03db1ecdc
DATA last<>+16(SB)/8, $0x174359406
DATA last<>+24(SB)/8, $0x0f1da05aa
DATA last<>+32(SB)/8, $0x15a546366
DATA last<>+40(SB)/8, $0x1751997d0
DATA last<>+48(SB)/8, $0x0ccaa009e
DATA last<>+56(SB)/8, $0x1db710640
GLOBL last<>(SB), RODATA|NOPTR, $64

// Barrett's reduction of the 12 bytes to 4: x^95 divided by the polynomial, and the polynomial.
DATA barrett<>+0(SB)/8, $0xb4e5b025f7011641
DATA barrett<>+8(SB)/8, $0x1db710641
GLOBL barrett<>(SB), RODATA|NOPTR, $16

// The 16 bytes from t on move bytes by 16-t places: PSHUFB clears those with the highest bit.
DATA move<>+0(SB)/8, $0x8080808080808080
DATA move<>+8(SB)/8, $0x8080808080808080
DATA move<>+16(SB)/8, $0x0706050403020100
DATA move<>+24(SB)/8, $0x0f0e0d0c0b0a0908
DATA move<>+32(SB)/8, $0x8080808080808080
DATA move<>+40(SB)/8, $0x8080808080808080
GLOBL move<>(SB), RODATA|NOPTR, $48

// FOLD moves Z by the distance K and adds what is THERE. It uses T.
#define FOLD(K, Z, T, THERE) \
	VPCLMULQDQ $0x11, K, Z, T; \
	VPCLMULQDQ $0x00, K, Z, Z; \
	VPTERNLOGD $0x96, THERE, T, Z

// Blocks of 64 bytes are counted from the end. Zeros fill up the first one: they do not change a register that is zero.
// They are loaded with a mask, so that memory before p is no part of the result and need not exist. (Where the page before
// is not in memory, this takes the processor 0.2 µs: it may concern the first packet of a buffer.)
//
// func fold512(p *byte, n int, ones *onesTable) uint32
TEXT ·fold512(SB), NOSPLIT|NOFRAME, $0-28
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), BX
	MOVQ ones+16(FP), DX
	MOVQ BX, CX
	NEGQ CX
	MOVQ $-1, AX
	SHLQ CX, AX  // modulo 64
	KMOVQ AX, K1 // without the zeros
	ANDQ $63, CX // how many zeros
	ADDQ CX, BX
	SUBQ CX, SI
	SUBQ CX, DX
	VMOVDQU8.Z (SI), K1, Z0
	VPORQ 64(DX), Z0, Z0
	SUBQ $64, BX
	JZ reduce
	VBROADCASTI32X4 by64<>(SB), Z8
	VMOVDQU64 64(SI), Z1
	VPORQ 128(DX), Z1, Z1
	FOLD(Z8, Z0, Z4, Z1)
	SUBQ $64, BX
	JZ reduce
	CMPQ BX, $512
	JAE long
more:
	FOLD(Z8, Z0, Z4, 128(SI))
	ADDQ $64, SI
	SUBQ $64, BX
	JNZ more
reduce:
	VMOVDQU64 last<>(SB), Z8
	VPCLMULQDQ $0x11, Z8, Z0, Z1
	VPCLMULQDQ $0x00, Z8, Z0, Z0
	VPXORQ Z1, Z0, Z0
	VEXTRACTI64X4 $1, Z0, Y1
	VPXOR Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPXOR X1, X0, X0
	VMOVDQU barrett<>(SB), X2
	VPCLMULQDQ $0x00, X2, X0, X1
	VPCLMULQDQ $0x10, X2, X1, X1
	VPXOR X1, X0, X0
	VPEXTRD $2, X0, AX
	VZEROUPPER
	MOVL AX, ret+24(FP)
	RET
long:
	// Four runs side by side: a single one waits for each multiplication.
	FOLD(Z8, Z0, Z4, 128(SI))
	VMOVDQU64 192(SI), Z1
	VMOVDQU64 256(SI), Z2
	VMOVDQU64 320(SI), Z3
	VBROADCASTI32X4 by256<>(SB), Z9
	ADDQ $256, SI
	SUBQ $256, BX
four:
	FOLD(Z9, Z0, Z4, 128(SI))
	FOLD(Z9, Z1, Z5, 192(SI))
	FOLD(Z9, Z2, Z6, 256(SI))
	FOLD(Z9, Z3, Z7, 320(SI))
	ADDQ $256, SI
	SUBQ $256, BX
	CMPQ BX, $256
	JAE four
	VBROADCASTI32X4 by192<>(SB), Z9
	VBROADCASTI32X4 by128<>(SB), Z10
	FOLD(Z8, Z2, Z6, Z3)
	FOLD(Z10, Z1, Z5, Z2)
	FOLD(Z9, Z0, Z4, Z1)
	TESTQ BX, BX
	JNZ more
	JMP reduce

// FOLD16 moves X by 16 bytes. It uses X0 and X12.
#define FOLD16(K, X) \
	MOVOA X, X12; \
	PCLMULQDQ $0x00, K, X; \
	PCLMULQDQ $0x11, K, X12; \
	PXOR X12, X

// LOAD reads 16 bytes and sets the bits that are masked. It uses X12.
#define LOAD(AT, X) \
	MOVOU AT(SI), X; \
	MOVOU (64+AT)(DX), X12; \
	POR X12, X

// func fold128(p *byte, n int, ones *onesTable) uint32
TEXT ·fold128(SB), NOSPLIT|NOFRAME, $0-28
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ ones+16(FP), DX
	MOVOA by16<>(SB), X0
	LOAD(0, X1)
	CMPQ CX, $64
	JB few
	LOAD(16, X2)
	LOAD(32, X3)
	LOAD(48, X4)
	ADDQ $64, SI
	ADDQ $64, DX // nothing but zeros from here on
	SUBQ $64, CX
	CMPQ CX, $64
	JB four
	MOVOA by64<>(SB), X6
more:
	FOLD16(X6, X1)
	FOLD16(X6, X2)
	FOLD16(X6, X3)
	FOLD16(X6, X4)
	MOVOU (SI), X8
	MOVOU 16(SI), X9
	MOVOU 32(SI), X10
	MOVOU 48(SI), X11
	PXOR X8, X1
	PXOR X9, X2
	PXOR X10, X3
	PXOR X11, X4
	ADDQ $64, SI
	SUBQ $64, CX
	CMPQ CX, $64
	JAE more
four:
	FOLD16(X0, X1)
	PXOR X2, X1
	FOLD16(X0, X1)
	PXOR X3, X1
	FOLD16(X0, X1)
	PXOR X4, X1
	JMP rest
few:
	ADDQ $16, SI
	ADDQ $16, DX
	SUBQ $16, CX
rest:
	SUBQ $16, CX
	JB tail
next:
	LOAD(0, X2)
	FOLD16(X0, X1)
	PXOR X2, X1
	ADDQ $16, SI
	ADDQ $16, DX
	SUBQ $16, CX
	JAE next
tail:
	ADDQ $16, CX
	JZ reduce
	// The last t bytes: the first t of X1 are folded into 16 that begin with the others.
	LEAQ move<>(SB), AX
	MOVOU (AX)(CX*1), X3   // moves towards the end by 16-t
	MOVOU 16(AX)(CX*1), X4 // moves towards the start by t
	MOVOU -16(SI)(CX*1), X2
	MOVOU 48(DX)(CX*1), X12
	POR X12, X2
	PXOR X5, X5
	PCMPGTB X3, X5
	PANDN X2, X5
	MOVOA X1, X2
	PSHUFB X3, X1
	PSHUFB X4, X2
	FOLD16(X0, X1)
	PXOR X2, X1
	PXOR X5, X1
reduce:
	MOVOU last<>+48(SB), X0
	FOLD16(X0, X1)
	MOVOA barrett<>(SB), X0
	MOVOA X1, X2
	PCLMULQDQ $0x00, X0, X2
	PCLMULQDQ $0x10, X0, X2
	PXOR X2, X1
	PEXTRD $2, X1, AX
	MOVL AX, ret+24(FP)
	RET
