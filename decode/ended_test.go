package decode_test

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/tcp"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// segmentOf is p, a TCP segment over IPv4 and Ethernet, with other flags, another place and another payload, and i ms later.
func segmentOf(p *capture.Packet, flags byte, seq uint32, payload []byte, i int64) capture.Packet {
	out := *p
	at := 14 + int(p.Data[14]&15)*4
	head := at + int(p.Data[at+12]>>4)*4
	out.Data = append(slices.Clone(p.Data[:head]), payload...)
	binary.BigEndian.PutUint16(out.Data[14+2:], uint16(len(out.Data)-14))
	binary.BigEndian.PutUint32(out.Data[at+4:], seq)
	out.Data[at+13] = flags
	out.Length = uint32(len(out.Data))
	out.Time += i * 1e6
	return out
}

// TestTerminateNamed: what ended an iWARP connection is the Terminate, if there is one, and not the FIN around it.
func TestTerminateNamed(t *testing.T) {
	const ack, fin = 0x10, tcp.FIN
	packets := sample(t, "iwarp-nfs41-recall.pcap", 0)
	at := 29 // the server's answer to the call before
	p, ofClient := &packets[at], &packets[at-2]
	var f, client link.Frame
	link.Decode(p.Link, p.Data, p.Length, &f)
	link.Decode(ofClient.Link, ofClient.Data, ofClient.Length, &client)
	if f.SrcPort != 20049 || f.PayloadLen == 0 || client.SrcPort == 20049 || client.PayloadLen == 0 {
		t.Fatal("another capture")
	}
	u := iwarp.AppendUntagged(nil, iwarp.NewControl(iwarp.OpTerminate, true), 0, 1, 0)
	binary.BigEndian.PutUint32(u[6:], iwarp.QueueTerminate)
	u = iwarp.AppendTerminate(u, iwarp.LayerDDP, 1, 1, 0, nil, nil)
	message := iwarp.AppendFPDU(nil, u, true)
	next := client.TCPSeq + uint32(client.PayloadLen)
	after := f.TCPSeq + uint32(len(message))
	const terminated = "Terminate: DDP: tagged buffer error: base or bounds violation"
	lone, its, peers := segmentOf(p, ack, f.TCPSeq, message, 0), segmentOf(p, fin|ack, after, nil, 1), segmentOf(ofClient, fin|ack, next, nil, 5)
	// The capture lacks 100 bytes before these.
	behind, itsBehind := segmentOf(p, ack, f.TCPSeq+100, message, 0), segmentOf(p, fin|ack, after+100, nil, 1)
	late := segmentOf(p, fin|ack, f.TCPSeq+100, message, 9)
	other := slices.Clone(message)
	other[2+iwarp.UntaggedLen+1] = 0 // another code
	binary.LittleEndian.PutUint32(other[len(other)-4:], crc32.Checksum(other[:len(other)-4], crc32.MakeTable(crc32.Castagnoli)))
	second := segmentOf(p, ack, after+100, other, 1)
	for _, c := range []struct {
		name, why string
		end       []capture.Packet
	}{
		{"alone", terminated, []capture.Packet{lone}},
		{"both FINs", terminated, []capture.Packet{lone, its, peers}},
		{"the peer's FIN", terminated, []capture.Packet{lone, peers}},
		{"a reset", terminated, []capture.Packet{lone, segmentOf(ofClient, tcp.RST|ack, next, nil, 5)}},
		{"behind a gap", terminated, []capture.Packet{behind, itsBehind, peers}},
		{"behind a gap, the peer's FIN alone", terminated, []capture.Packet{behind, peers}},
		{"another one behind a gap", terminated, []capture.Packet{lone, second, peers}},
		{"behind a gap, after the peer's FIN", "TCP FIN from 192.0.2.2", []capture.Packet{peers, late}},
	} {
		var why []string
		decodedWith(slices.Concat(packets[:at], c.end), decode.Options{}, func(tx *transaction.Transaction) {
			for _, n := range tx.Notes {
				if n.Kind == transaction.ConnectionEnded {
					why = append(why, n.Why)
				}
			}
		})
		if len(why) != 1 || why[0] != c.why {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}
