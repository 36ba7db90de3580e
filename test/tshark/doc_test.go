// Package tshark compares this module with tshark, field by field, for every capture of
// samples/ and of the folder that RPCRDMA_CAPTURES names.
//
// The two programs share no code, so both would have to make a mistake for it to go
// unnoticed. Where tshark is known to be wrong, or shows less, exceptions_test.go has an
// exception with the reason; docs/tshark.md describes each. An exception holds for packets with a certain property,
// not for a capture, and everything that it does not cover has to agree.
//
// The comparison needs tshark, so it is built with the tag tshark only: the
// script run does so, and says loudly when it cannot. The other tests here need
// nothing.
//
//	RPCRDMA_CAPTURES=DIR         compare these captures, too
//	RPCRDMA_TSHARK=/path/tshark  the program to compare with
package tshark
