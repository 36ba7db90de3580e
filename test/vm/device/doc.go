// Package device holds the tests that need an RDMA device: those of the
// provider over rdma-core. test/vm/run builds them with the tag verbs and runs
// them in a virtual machine.
package device
