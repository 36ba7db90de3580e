package clitest

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// Damage changes bytes of a Send of one packet, and computes the ICRC anew: damage FROM TO PACKET OFFSET HEX. The
// file is a little-endian pcap of RoCEv2.
func Damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 5 {
		ts.Fatalf("usage: damage FROM TO PACKET OFFSET HEX")
	}
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	number, err := strconv.Atoi(args[2])
	ts.Check(err)
	offset, err := strconv.Atoi(args[3])
	ts.Check(err)
	with, err := hex.DecodeString(args[4])
	ts.Check(err)
	le, at := binary.LittleEndian, 24
	for range number - 1 {
		at += 16 + int(le.Uint32(b[at+8:]))
	}
	p := b[at+16:][:le.Uint32(b[at+8:])]
	var f link.Frame
	link.Decode(capture.LinkType(le.Uint32(b[20:])), p, uint32(len(p)), &f)
	end := f.PayloadLen - roce.ICRCSize
	if f.Proto != link.UDP || !roce.Opcode(f.Payload[0]).IsSend() || roce.BTHSize+offset+len(with) > end {
		ts.Fatalf("packet %d of %s is no Send with so many bytes", number, args[0])
	}
	copy(f.Payload[roce.BTHSize+offset:], with)
	sum, ok := roce.ICRC(f.Proto, f.Net, f.Transport, f.Payload[:end])
	if !ok {
		ts.Fatalf("packet %d of %s has no ICRC", number, args[0])
	}
	le.PutUint32(f.Payload[end:], sum)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o644))
}
