//go:build !amd64

package roce

const folds, foldsWide = false, false

func fold128(*byte, int, *onesTable) uint32 { panic("not on this processor") }
func fold512(*byte, int, *onesTable) uint32 { panic("not on this processor") }
