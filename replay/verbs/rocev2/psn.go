package rocev2

// PSNs have 24 bits and wrap; they are compared by their distance (IBTA volume
// 1, section 9.7.1).
const psnMask = 1<<24 - 1

// psnDiff is a − b, between −2^23 and 2^23 − 1.
func psnDiff(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }

func psnAdd(p, n uint32) uint32 { return (p + n) & psnMask }
