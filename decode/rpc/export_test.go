package rpc

import "maps"

// SameNames reports whether two Names know the same.
func SameNames(a, b *Names) bool {
	return a.bytes == b.bytes && maps.Equal(a.byHandle, b.byHandle) && maps.Equal(a.byName, b.byName)
}
