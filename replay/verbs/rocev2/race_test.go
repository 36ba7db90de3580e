//go:build race

package rocev2

// allowedAllocations: under the race detector, pools lose what is put into them
// at random.
const allowedAllocations = 100
