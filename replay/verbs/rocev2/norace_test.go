//go:build !race

package rocev2

// allowedAllocations: the garbage collector empties pools from time to time.
const allowedAllocations = 0.5
