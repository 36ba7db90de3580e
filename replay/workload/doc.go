// Package workload holds a plan, with the file that contains its data: its tables in memory, its
// ops in memory (Load) or in the file (Open), from where Read reads them. It
// answers questions about it that need no server: which object an operation works
// on, what lies below the base, what cannot be replayed.
package workload
