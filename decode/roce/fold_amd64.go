package roce

import "golang.org/x/sys/cpu"

var (
	// folds reports whether the processor has what fold128 needs.
	folds = cpu.X86.HasPCLMULQDQ && cpu.X86.HasSSSE3 && cpu.X86.HasSSE41
	// foldsWide reports whether it has what fold512 needs.
	foldsWide = folds && cpu.X86.HasAVX2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL &&
		cpu.X86.HasAVX512VPCLMULQDQ
)

// fold128 is the register of a CRC, zero at first, after n bytes from p on, at least 16, in which the bits of ones are set.
// It takes 16 bytes a step.
//
//go:noescape
func fold128(p *byte, n int, ones *onesTable) uint32

// fold512 is fold128 with 64 bytes a step, and with four steps side by side for long packets.
//
//go:noescape
func fold512(p *byte, n int, ones *onesTable) uint32
