package extract

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// step is a call of NFSv3 and what came back.
type step struct {
	procedure     uint32
	args, results xdr.Message
}

// transaction is the step of which the capture has so much of arguments and results.
func (s *step) transaction(xid uint32, args, results int) *transaction.Transaction {
	c := oncrpc.Call{XID: xid, RPCVersion: 2, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Procedure: s.procedure}
	tx := &transaction.Transaction{
		Connection: &rdma.Connection{ID: 1, Fabric: rdma.TCP}, XID: xid, Named: true, Program: c.Program, Version: c.Version, Procedure: c.Procedure,
	}
	fill := func(m *transaction.Message, number uint64, header, body []byte, captured int) {
		m.Payload, m.PayloadLength = append(header, body[:captured]...), len(header)+len(body)
		m.First = rdma.Ref{Time: int64(number), Number: number}
		m.Last = m.First
	}
	fill(&tx.Call, 1, c.Append(nil), s.args.Append(nil), args)
	fill(&tx.Reply, 2, (&oncrpc.Reply{XID: xid}).Append(nil), s.results.Append(nil), results)
	return tx
}

// TestCut: what the capture has cut harms no file: sizes and offsets that were not captured are not zero.
func TestCut(t *testing.T) {
	file := nfs3.NfsFh3{Data: []byte("f")}
	inline := func(s string) xdr.Data { return xdr.Data{Length: uint32(len(s)), Inline: []byte(s)} }
	sized := func(n uint64) nfs3.PostOpAttr {
		return nfs3.PostOpAttr{AttributesFollow: true, Attributes: nfs3.Fattr3{Size: n}}
	}
	first := step{
		nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{File: file, Count: 8, Data: inline("original")},
		&nfs3.WRITE3res{Resok: nfs3.WRITE3resok{FileWcc: nfs3.WccData{After: sized(8)}, Count: 8}},
	}
	for name, c := range map[string]struct {
		step
		want string
	}{
		"WRITE": {step{
			nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{File: file, Offset: 8, Count: 5, Data: inline(", new")},
			&nfs3.WRITE3res{Resok: nfs3.WRITE3resok{FileWcc: nfs3.WccData{After: sized(13)}, Count: 5}},
		}, "original, new"},
		"READ": {step{
			nfs3.NFSPROC3_READ, &nfs3.READ3args{File: file, Offset: 8, Count: 5},
			&nfs3.READ3res{Resok: nfs3.READ3resok{FileAttributes: sized(13), Count: 5, Eof: true, Data: inline(", new")}},
		}, "original, new"},
		"SETATTR": {step{
			nfs3.NFSPROC3_SETATTR, &nfs3.SETATTR3args{Object: file, NewAttributes: nfs3.Sattr3{Size: nfs3.SetSize3{SetIt: true, Size: 4}}},
			&nfs3.SETATTR3res{},
		}, "orig"},
		"GETATTR": {step{
			nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: file}, &nfs3.GETATTR3res{Resok: nfs3.GETATTR3resok{ObjAttributes: nfs3.Fattr3{Size: 13}}},
		}, "original"},
		"failed WRITE": {step{
			nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{File: file, Count: 5, Data: inline("wrong")}, &nfs3.WRITE3res{Status: nfs3.NFS3ERR_IO},
		}, "original"},
	} {
		allArgs, allResults := len(c.args.Append(nil)), len(c.results.Append(nil))
		run := func(args, results int) string {
			dir := filepath.Join(t.TempDir(), "out")
			x, err := New(dir, Options{Holes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			v := rpc.View{Names: new(rpc.Names)}
			for _, tx := range []*transaction.Transaction{
				first.transaction(1, len(first.args.Append(nil)), len(first.results.Append(nil))), c.transaction(2, args, results),
			} {
				v.Set(tx)
				if err := x.Add(&v); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := x.Close(v.Names); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(dir, "by-handle", "66"))
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		if got := run(allArgs, allResults); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		check := func(args, results int) {
			got := run(args, results)
			if len(got) != len(c.want) && (len(got) < len("original") || len(got) > len("original, new")) {
				t.Errorf("%s, %d of %d and %d of %d bytes: %q", name, args, allArgs, results, allResults, got)
			}
			for i := range got {
				if b := got[i]; b != 0 && b != "original, new"[i] {
					t.Errorf("%s, %d of %d and %d of %d bytes: %q", name, args, allArgs, results, allResults, got)
					break
				}
			}
		}
		step := 1
		if testing.Short() {
			step = 3 // no multiple of the four bytes of XDR
		}
		for n := 0; n < allArgs; n += step {
			check(n, allResults)
		}
		for n := 0; n < allResults; n += step {
			check(allArgs, n)
		}
	}
}

// TestNothingSeen: a file of which no byte can be written is listed with the reason.
func TestNothingSeen(t *testing.T) {
	write := func(offset uint64) *step {
		return &step{
			nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{File: nfs3.NfsFh3{Data: []byte("f")}, Offset: offset, Count: 8, Data: xdr.Data{Length: 8, Inline: []byte("original")}},
			&nfs3.WRITE3res{Resok: nfs3.WRITE3resok{Count: 8}},
		}
	}
	for _, c := range []struct {
		name     string
		offset   uint64
		captured int // bytes of the arguments
		note     string
	}{
		{"offset cut", 7, 12, missing},
		{"last byte that there can be", 1<<64 - 1, 36, "data beyond the offset that is extracted"},
		{"far away", maxOffset + 1, 36, "data beyond the offset that is extracted"},
	} {
		dir := filepath.Join(t.TempDir(), "out")
		x, err := New(dir, Options{Holes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		v := rpc.View{Names: new(rpc.Names)}
		s := write(c.offset)
		v.Set(s.transaction(1, c.captured, len(s.results.Append(nil))))
		if err := x.Add(&v); err != nil {
			t.Fatal(err)
		}
		n, err := x.Close(v.Names)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, manifestName))
		if err != nil {
			t.Fatal(err)
		}
		if n != 1 || !strings.Contains(string(b), `"note":"`+c.note) || !strings.Contains(string(b), `"complete":false`) {
			t.Errorf("%s: %d files: %s", c.name, n, b)
		}
	}
}
