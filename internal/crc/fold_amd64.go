package crc

import "golang.org/x/sys/cpu"

// wide reports whether the processor has what fold needs.
var wide = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasPCLMULQDQ

// fold is the register of the CRC after n bytes from p on. n is at least 256, and a multiple of 16.
//
//go:noescape
func fold(p *byte, n int, register uint32) uint32
