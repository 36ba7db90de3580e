// Package workload holds a plan in memory, with the file that contains its data, and
// answers questions about it that need no server: which object an operation works
// on, what lies below the base, what cannot be replayed.
package workload
