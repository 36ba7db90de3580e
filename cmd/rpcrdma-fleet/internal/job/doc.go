// Package job makes jobs of patterns, writes them to a store, and tells from the store alone how far they are.
package job
