package nfs4

import (
	"strconv"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// OpName is the name of an operation, without its prefix: "READ", or
// "op 99" for a number that is not defined.
func OpName(op uint32) string {
	if s := opSymbol(op); s != "" {
		return s
	}
	return "op " + strconv.FormatUint(uint64(op), 10)
}

// CbOpName is the name of a callback operation: "CB_RECALL".
func CbOpName(op uint32) string {
	if i := cbOps.info(op); i != nil {
		return i.name
	}
	return "op " + strconv.FormatUint(uint64(op), 10)
}

// opSymbol is the name of an operation, empty if the number is not defined.
func opSymbol(op uint32) string {
	if i := foreOps.info(op); i != nil {
		return i.name
	}
	return ""
}

// SequenceStatusName is the name of a status flag of SEQUENCE (RFC 8881, section 18.46.3), or its number.
func SequenceStatusName(flag uint32) string {
	if s := xdr.FlagNames(uint64(flag), flagsSeq4StatusFlags); s != "" {
		return s
	}
	return "0x" + strconv.FormatUint(uint64(flag), 16)
}

// StatusName is the symbol of an nfsstat4, or its number.
func StatusName(status uint32) string { return Nfsstat4(status).String() }

// AttrName is the name of an attribute: "type", empty if the number is not
// defined.
func AttrName(n uint32) string {
	if uint64(n) < uint64(len(attrTable)) {
		return attrTable[n].name
	}
	return ""
}
