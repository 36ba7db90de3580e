package nfs4

import (
	"encoding/binary"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// sink discards replies.
type sink struct {
	exchange
	bytes, failed int
}

func (s *sink) Reply(m *transport.Message) {
	s.bytes += m.Size()
	if binary.BigEndian.Uint32(m.Stream[replyHeader:]) != 0 {
		s.failed++
	}
	if m.Release != nil {
		m.Release()
	}
}

// repeat returns a function that sends the same COMPOUND as the next one of a
// slot.
func repeat(s *session, max []uint32, ops ...nfs4.Op) (func(), *sink) {
	args := s.encode(ops...)
	x := &sink{}
	x.max = max
	head := header(1, 0)
	x.call.Stream = append(head, args...)
	// The sequence ID follows tag, minor version, count, operation and session ID.
	at := x.call.Stream[len(head)+4+4+4+4+16:]
	seq := binary.BigEndian.Uint32(at)
	return func() {
		binary.BigEndian.PutUint32(at, seq)
		seq++
		s.rpc.ServeRPC(x)
	}, x
}

var linuxAttrs = []uint32{nfs4.FATTR4_TYPE, nfs4.FATTR4_CHANGE, nfs4.FATTR4_SIZE, nfs4.FATTR4_FSID, nfs4.FATTR4_FILEID,
	nfs4.FATTR4_MODE, nfs4.FATTR4_NUMLINKS, nfs4.FATTR4_OWNER, nfs4.FATTR4_OWNER_GROUP, nfs4.FATTR4_RAWDEV,
	nfs4.FATTR4_SPACE_USED, nfs4.FATTR4_TIME_ACCESS, nfs4.FATTR4_TIME_METADATA, nfs4.FATTR4_TIME_MODIFY, nfs4.FATTR4_MOUNTED_ON_FILEID}

func fastPath(r *rig) (s *session, h []byte, sid nfs4.Stateid4) {
	s = r.mount("client", 1, 0)
	h, sid = s.create("o", "f", 3, 0)
	for i := range uint64(4) {
		s.must(ok, s.do(putfh(h), write(sid, i<<18, string(make([]byte, 1<<18)))))
	}
	return s, h, sid
}

func BenchmarkGetattr(b *testing.B) {
	s, h, _ := fastPath(newRig(b, Options{}))
	do, x := repeat(s, nil, putfh(h), getattr(linuxAttrs...))
	b.ReportAllocs()
	for b.Loop() {
		do()
	}
	if x.failed > 0 {
		b.Errorf("%d failed", x.failed)
	}
}

func BenchmarkRead1M(b *testing.B) {
	s, h, sid := fastPath(newRig(b, Options{}))
	do, x := repeat(s, []uint32{1 << 20}, putfh(h), read(sid, 0, 1<<20))
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		do()
	}
	if x.failed > 0 {
		b.Errorf("%d failed", x.failed)
	}
}

func BenchmarkWrite1M(b *testing.B) {
	s, h, sid := fastPath(newRig(b, Options{}))
	do, x := repeat(s, nil, putfh(h), write(sid, 0, string(make([]byte, 1<<20))))
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		do()
	}
	if x.failed > 0 {
		b.Errorf("%d failed", x.failed)
	}
}

func BenchmarkOpenClose(b *testing.B) {
	s, _, _ := fastPath(newRig(b, Options{}))
	do, x := repeat(s, nil, putroot, open("f", 3, nfs4.Openflag4{}), getattr(linuxAttrs...), closeOp(nfs4.Stateid4{Seqid: 1}))
	b.ReportAllocs()
	for b.Loop() {
		do()
	}
	if x.failed > 0 {
		b.Errorf("%d failed", x.failed)
	}
}
