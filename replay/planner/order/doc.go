// Package order finds the earlier ops of a plan that an op has to wait for.
package order
