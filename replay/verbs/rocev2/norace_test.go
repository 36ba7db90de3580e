//go:build !race

package rocev2

// allowedAllocations: the garbage collector empties pools now and then.
const allowedAllocations = 0.5
