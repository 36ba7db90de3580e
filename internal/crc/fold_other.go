//go:build !amd64

package crc

const wide = false

func fold(*byte, int, uint32) uint32 { panic("not on this processor") }
