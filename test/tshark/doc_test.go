// Package tshark compares what this module decodes with what tshark decodes,
// field by field, over every capture of samples/ and over the folder that
// RPCRDMA_CAPTURES names.
//
// The two programs share no code, so a mistake would have to be made twice to
// go unseen. Where tshark is known to be wrong, or says less, an exception
// stands in exceptions_test.go with the reason; docs/tshark.md tells how each
// was established. An exception holds for packets with a certain property,
// not for a capture, and everything that it does not cover has to agree.
//
// The comparison needs tshark, so it is built with the tag tshark only: the
// script run does so, and says loudly when it cannot. The other tests here need
// nothing.
//
//	RPCRDMA_CAPTURES=DIR         compare these captures, too
//	RPCRDMA_TSHARK=/path/tshark  the program to compare with
package tshark
