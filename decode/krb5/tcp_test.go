package krb5

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// stream makes frames of one TCP connection.
type stream struct {
	seq     [2]uint32
	batch   capture.Batch
	packets uint64
}

// send adds a record of one fragment, in segments of at most n bytes.
func (s *stream) send(side int, record []byte, n int) {
	b := binary.BigEndian.AppendUint32(nil, 1<<31|uint32(len(record)))
	b = append(b, record...)
	for len(b) > 0 {
		k := min(n, len(b))
		s.segment(side, b[:k])
		b = b[k:]
	}
}

func (s *stream) segment(side int, data []byte) {
	f := make([]byte, 14+20+20, 14+20+20+len(data))
	f[12], f[13] = 8, 0
	ip, tcp := f[14:], f[34:]
	ip[0], ip[8], ip[9] = 0x45, 64, 6
	binary.BigEndian.PutUint16(ip[2:], uint16(40+len(data)))
	ends := [2][4]byte{{192, 0, 2, 2}, {192, 0, 2, 1}}
	ports := [2]uint16{1000, 2049}
	copy(ip[12:], ends[side][:])
	copy(ip[16:], ends[1-side][:])
	binary.BigEndian.PutUint16(tcp, ports[side])
	binary.BigEndian.PutUint16(tcp[2:], ports[1-side])
	binary.BigEndian.PutUint32(tcp[4:], s.seq[side])
	binary.BigEndian.PutUint32(tcp[8:], s.seq[1-side])
	tcp[12], tcp[13] = 5<<4, 0x18
	s.seq[side] += uint32(len(data))
	f = append(f, data...)
	s.packets++
	s.batch.Packets = append(s.batch.Packets, capture.Packet{
		Number: s.packets, Time: int64(s.packets) * int64(time.Millisecond), Length: uint32(len(f)), Data: f, Link: capture.LinkEthernet,
	})
}

// TestTCP decrypts records of TCP, from packets on.
func TestTCP(t *testing.T) {
	s := newScene(t, AES256SHA384)
	key := newKey(AES256SHA1)
	var tcp stream
	for _, tx := range []*transaction.Transaction{s.init(key, 3), s.private(1), s.private(2)} {
		tcp.send(0, tx.Call.Payload, 100)
		tcp.send(1, tx.Reply.Payload, 60)
	}
	view := rpc.View{Unwrap: New(s.keytab(key, 3), Options{})}
	opened := 0
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		view.Set(tx)
		if len(tx.Notes) > 0 {
			t.Errorf("XID %d: %q", tx.XID, tx.Notes)
		}
		if view.CallOpened.How == rpc.Decrypted && view.ReplyOpened.How == rpc.Decrypted && view.Status() == "NFS3ERR_NOENT" {
			opened++
		}
	})
	d.Batch(&tcp.batch)
	d.Flush()
	if opened != 2 {
		t.Errorf("%d of 2 transactions decrypted, %d found", opened, d.Stats().Transactions)
	}
}
