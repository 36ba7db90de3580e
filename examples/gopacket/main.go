// Command gopacket prints the RPC-over-RDMA headers in pcap files. It shows how
// a program that uses gopacket comes to know NFS/RDMA: by one import.
//
//	go run ./examples/gopacket samples/*.pcap
package main

import (
	"fmt"
	"io"
	"log"
	"os"

	"github.com/google/gopacket"
	"github.com/google/gopacket/pcapgo"

	rdma "github.com/rpcrdma/toolkit/decode/layers"
)

func main() {
	for _, name := range os.Args[1:] {
		if err := headers(os.Stdout, name); err != nil {
			log.Fatalf("%s: %v", name, err)
		}
	}
}

func headers(w io.Writer, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	reader, err := pcapgo.NewReader(file)
	if err != nil {
		return err
	}
	source := gopacket.NewPacketSource(reader, reader.LinkType())
	source.DecodeStreamsAsDatagrams = true // to look into TCP, for iWARP
	for packet := range source.Packets() {
		for _, layer := range packet.Layers() { // a TCP segment may hold several
			if l, ok := layer.(*rdma.RPCoverRDMA); ok {
				h := &l.Header
				var flow gopacket.Flow // none in InfiniBand within a subnet
				if n := packet.NetworkLayer(); n != nil {
					flow = n.NetworkFlow()
				}
				fmt.Fprintf(w, "%s %v xid 0x%08x %s credits %d chunks %s\n", packet.Metadata().Timestamp.UTC().Format("15:04:05.000000"),
					flow, h.XID, h.Type, h.Credits, h.Key())
			}
		}
	}
	return nil
}
