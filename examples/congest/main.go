// Command congest writes a copy of a capture of RoCEv2 over IPv4 in which a switch seems to be
// congested: every tenth packet with RDMA data is marked "congestion experienced" (RFC 3168). It
// makes captures to try reports and alarms on.
//
//	go run ./examples/congest samples/rocev2-nfs3-bulk.pcap.zst >congested.pcapng
package main

import (
	"encoding/binary"
	"io"
	"log"
	"os"

	"github.com/rpcrdma/toolkit/capture"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: congest CAPTURE >COPY")
	}
	if _, err := congest(os.Stdout, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func congest(out io.Writer, in string) (marked int, err error) {
	r, err := capture.Open([]string{in}, capture.Options{})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	w := capture.NewWriter(out, capture.WriterOptions{Format: capture.Pcapng})
	data := 0
	for p, err := range capture.Packets(r) {
		if err != nil {
			return marked, err
		}
		if p.Link == capture.LinkEthernet && carriesData(p.Data) {
			if data++; data%10 == 0 {
				mark(p.Data[14:])
				marked++
			}
		}
		if err := w.Write(p); err != nil {
			return marked, err
		}
	}
	return marked, w.Flush()
}

// carriesData says whether a frame is Ethernet, IPv4 without options, UDP to port 4791, and an
// RDMA Write or a Read Response (base transport header, opcodes 6 to 11 and 13 to 16).
func carriesData(frame []byte) bool {
	if len(frame) < 14+20+8+12 || binary.BigEndian.Uint16(frame[12:]) != 0x0800 || frame[14] != 0x45 || frame[14+9] != 17 ||
		binary.BigEndian.Uint16(frame[14+20+2:]) != 4791 {
		return false
	}
	opcode := frame[14+20+8]
	return opcode >= 6 && opcode <= 11 || opcode >= 13 && opcode <= 16
}

// mark sets both bits of ECN and corrects the checksum of the header. The ICRC does not cover
// them.
func mark(ip []byte) {
	ip[1] |= 3
	ip[10], ip[11] = 0, 0
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
}
