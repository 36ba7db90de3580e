package invariant_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/invariant"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

const second = int64(1e9)

// exchange is a call at a time of which the reply comes a millisecond later.
func exchange(at int64, args, result xdr.Message) invariant.Exchange {
	return invariant.Exchange{Args: args, Result: result, Sent: at, Replied: at + 1e6}
}

func compound(at int64, pairs ...xdr.Message) invariant.Exchange {
	a, r := new(nfs4.CompoundArgs), new(nfs4.CompoundRes)
	number := func(m xdr.Message) nfs4.NfsOpnum4 {
		switch m.(type) {
		case *nfs4.SEQUENCE4args:
			return nfs4.OP_SEQUENCE
		case *nfs4.CREATE_SESSION4args:
			return nfs4.OP_CREATE_SESSION
		case *nfs4.PUTFH4args:
			return nfs4.OP_PUTFH
		case *nfs4.GETATTR4args:
			return nfs4.OP_GETATTR
		case *nfs4.SETATTR4args:
			return nfs4.OP_SETATTR
		case *nfs4.READDIR4args:
			return nfs4.OP_READDIR
		case *nfs4.REMOVE4args:
			return nfs4.OP_REMOVE
		}
		return nfs4.OP_ILLEGAL
	}
	for i := 0; i < len(pairs); i += 2 {
		n := uint32(number(pairs[i]))
		a.Ops = append(a.Ops, nfs4.Op{Number: n, Body: pairs[i]})
		r.Ops = append(r.Ops, nfs4.Op{Number: n, Body: pairs[i+1]})
	}
	return exchange(at, a, r)
}

func put(handle string) (args, result xdr.Message) {
	return &nfs4.PUTFH4args{Object: []byte(handle)}, &nfs4.Status4res{}
}

// getattr asks for the attributes that it gets.
func getattr(at int64, a *nfs4.Attrs) invariant.Exchange {
	p, q := put("file")
	return compound(at, p, q, &nfs4.GETATTR4args{AttrRequest: nfs4.AttrBitmap4{Bitmap4: a.Mask}},
		&nfs4.GETATTR4res{Resok4: nfs4.GETATTR4resok{ObjAttributes: a.Fattr4()}})
}

func attrs(change, size, fileid uint64) *nfs4.Attrs {
	return &nfs4.Attrs{Mask: nfs4.NewBitmap4(nfs4.FATTR4_CHANGE, nfs4.FATTR4_SIZE, nfs4.FATTR4_FILEID), Change: change, Size: size, Fileid: fileid}
}

func remove(at int64, before, after uint64) invariant.Exchange {
	p, q := put("file")
	return compound(at, p, q, &nfs4.REMOVE4args{Target: []byte("x")},
		&nfs4.REMOVE4res{Resok4: nfs4.REMOVE4resok{Cinfo: nfs4.ChangeInfo4{Atomic: true, Before: before, After: after}}})
}

func setattr(asked, set []uint32) invariant.Exchange {
	p, q := put("file")
	return compound(0, p, q, &nfs4.SETATTR4args{ObjAttributes: nfs4.Fattr4{Attrmask: nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(asked...)}}},
		&nfs4.SETATTR4res{Attrsset: nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(set...)}})
}

func readdir(from uint64, eof bool, cookies ...uint64) invariant.Exchange {
	p, q := put("file")
	r := new(nfs4.READDIR4res)
	for _, c := range cookies {
		r.Resok4.Reply.Entries = append(r.Resok4.Reply.Entries, nfs4.Entry4{Cookie: c})
	}
	r.Resok4.Reply.Eof = eof
	return compound(0, p, q, &nfs4.READDIR4args{Cookie: from, Maxcount: 1 << 12}, r)
}

func readdir3(from uint64, eof bool, cookies ...uint64) invariant.Exchange {
	r := new(nfs3.READDIR3res)
	for _, c := range cookies {
		r.Resok.Reply.Entries = append(r.Resok.Reply.Entries, nfs3.Entry3{Cookie: c})
	}
	r.Resok.Reply.Eof = eof
	return exchange(0, &nfs3.READDIR3args{Dir: nfs3.NfsFh3{Data: []byte("file")}, Cookie: from, Count: 1 << 12}, r)
}

func getattr3(at int64, ctime uint32, size uint64) invariant.Exchange {
	r := new(nfs3.GETATTR3res)
	r.Resok.ObjAttributes = nfs3.Fattr3{Size: size, Fileid: 1, Ctime: nfs3.Nfstime3{Seconds: ctime}}
	return exchange(at, &nfs3.GETATTR3args{Object: nfs3.NfsFh3{Data: []byte("file")}}, r)
}

func again(x invariant.Exchange) invariant.Exchange {
	x.Again = true
	return x
}

func long(x invariant.Exchange) invariant.Exchange {
	x.Replied = x.Sent + 10*second
	return x
}

func TestJudge(t *testing.T) {
	sequence := func(slot uint32) invariant.Exchange {
		r := new(nfs4.SEQUENCE4res)
		r.SrResok4.SrSlotid = slot
		return compound(0, &nfs4.SEQUENCE4args{SaSlotid: 1}, r)
	}
	type list = []invariant.Exchange
	many := map[uint64]bool{}
	for i := range uint64(200) {
		many[i+1] = true
	}
	for _, tt := range []struct {
		name string
		in   list
		want string // "number of the exchange: what is seen"
	}{
		{"slot", list{sequence(1), sequence(2)}, "1: results of slot 2 for slot 1"},
		{"cookies", list{readdir(0, false, 3, 4), readdir(4, true, 5, 6)}, ""},
		{"cookie 0", list{readdir(0, true, 0, 4)}, "0: entry 1 of the page has cookie 0"},
		{"cookie twice in a page", list{readdir(0, true, 3, 4, 3)}, "0: cookie 3 again"},
		{"cookie of the call", list{readdir(4, true, 4)}, "0: cookie 4 again"},
		{"cookie twice in a listing", list{readdir(0, false, 3, 4), readdir(4, false, 5, 3)}, "1: cookie 3 again"},
		{"two listings", list{readdir(0, false, 3, 4), readdir(0, false, 3, 4)}, ""},
		{"read again from the middle", list{readdir(0, false, 3, 4, 5), readdir(4, true, 5)}, ""},
		{"empty directory", list{readdir(0, true)}, ""},
		{"a page without an entry", list{readdir(0, false)}, "0: no entries, and eof is not set"},
		{"a page that is too long", list{readdir(0, true, slices.Collect(maps.Keys(many))...)}, "0: a page of 4816 bytes, of which the call allows 4096"},
		{"a page of NFSv3 that is too long", list{readdir3(0, true, slices.Collect(maps.Keys(many))...)}, "0: a page of 4820 bytes, of which the call allows 4096"},
		{"NFSv3", list{readdir3(0, false, 1, 2), readdir3(2, false, 1)}, "1: cookie 1 again"},
		{"changes", list{remove(0, 1, 2), remove(second, 2, 3), remove(2*second, 9, 10)}, ""},
		{"a change that does not show", list{remove(0, 1, 1)}, "0: 1 before and after, atomically"},
		{"a change that is gone", list{remove(0, 1, 2), remove(second, 1, 2)}, "1: 1, which became 2"},
		{"change_info of the change time", list{getattr(0, attrs(7, 5, 1)), remove(second, 1<<60, 1<<60+5), getattr(2*second, attrs(8, 5, 1))}, "2: 8 after the change, and 1152921504606846981 in change_info"},
		{"a change attribute that jumps", list{getattr(0, attrs(7, 5, 1)), remove(second, 1<<60, 1<<60+5), getattr(2*second, attrs(1<<60+5, 5, 1))}, ""},
		{"change_info of the attribute", list{getattr(0, attrs(7, 5, 1)), remove(second, 7, 8), getattr(2*second, attrs(8, 5, 1))}, ""},
		{"two changes at once", list{long(remove(0, 1, 2)), remove(second, 1, 2)}, ""},
		{"sent again", list{remove(0, 1, 2), again(remove(second, 1, 2))}, ""},
		{"size", list{getattr(0, attrs(1, 5, 1)), getattr(4*second, attrs(1, 5, 1)), getattr(5*second, attrs(1, 6, 1))}, "2: size 6 instead of 5"},
		{"size with change", list{getattr(0, attrs(1, 5, 1)), getattr(4*second, attrs(1, 5, 1)), getattr(5*second, attrs(2, 6, 1))}, ""},
		{"size within a tick", list{getattr(0, attrs(1, 5, 1)), getattr(second, attrs(1, 6, 1))}, ""},
		{"file id", list{getattr(0, attrs(1, 5, 1)), getattr(second, attrs(2, 5, 2))}, "1: fileid 2 instead of 1"},
		{"change time of NFSv3", list{getattr3(0, 9, 5), getattr3(second, 8, 5)}, "1: 1s earlier"},
		{"at the same time", list{long(getattr3(0, 9, 5)), getattr3(second, 8, 5)}, ""},
		{"size of NFSv3", list{getattr3(0, 9, 5), getattr3(4*second, 9, 5), getattr3(5*second, 9, 6)}, "2: size 6 instead of 5"},
		{"all set", list{setattr([]uint32{4, 33}, []uint32{4, 33})}, ""},
		{"not set", list{setattr([]uint32{4, 33}, []uint32{4})}, "0: success, but attrsset does not have mode"},
		{"set, not asked", list{setattr([]uint32{4}, []uint32{4, 33})}, "0: mode, which was not requested"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := invariant.New()
			var got []string
			for i := range tt.in {
				for _, b := range c.Judge(&tt.in[i]) {
					if b.Expected() == "" {
						t.Errorf("%v has no sentence", b.Kind)
					}
					got = append(got, fmt.Sprintf("%d: %s", i, b.Seen()))
				}
			}
			if g := strings.Join(got, "; "); g != tt.want {
				t.Errorf("got %q, want %q", g, tt.want)
			}
		})
	}
}

// Any number of handles takes a bounded number of objects, and nothing is allocated for those that are known.
func TestBounded(t *testing.T) {
	c := invariant.New()
	for i := range 100000 {
		r := new(nfs3.GETATTR3res)
		x := exchange(int64(i), &nfs3.GETATTR3args{Object: nfs3.NfsFh3{Data: fmt.Append(nil, i)}}, r)
		if b := c.Judge(&x); len(b) > 0 {
			t.Fatal(b)
		}
	}
	at := int64(1e9)
	x := getattr3(0, 9, 5)
	if n := testing.AllocsPerRun(100, func() {
		x.Sent, x.Replied = at, at+1
		at += 2
		c.Judge(&x)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestIllegal: OP_ILLEGAL is right for numbers that the minor version does not define, and wrong for others.
func TestIllegal(t *testing.T) {
	for _, x := range []struct {
		minor uint32
		op    nfs4.NfsOpnum4
		wrong bool
	}{
		{0, nfs4.OP_RELEASE_LOCKOWNER, true}, {0, nfs4.OP_EXCHANGE_ID, false}, {1, nfs4.OP_RECLAIM_COMPLETE, true},
		{1, nfs4.OP_ALLOCATE, false}, {2, nfs4.OP_ALLOCATE, true}, {2, nfs4.OP_GETXATTR, false}, {2, 1000, false}, {7, nfs4.OP_READ, false},
	} {
		args := &nfs4.CompoundArgs{Minorversion: x.minor}
		args.Ops = []nfs4.Op{{Number: uint32(x.op)}}
		res := &nfs4.CompoundRes{}
		res.Ops = []nfs4.Op{{Number: uint32(nfs4.OP_ILLEGAL)}}
		found := invariant.New().Judge(&invariant.Exchange{Args: args, Result: res, Sent: 1, Replied: 2})
		if got := len(found) == 1 && found[0].Kind == invariant.Contradiction && found[0].At == 0; got != x.wrong {
			t.Errorf("NFSv4.%d, operation %d: %+v", x.minor, x.op, found)
		}
	}
}

// TestReplySize: a reply has no more bytes than its session allows.
func TestReplySize(t *testing.T) {
	made, asked, answered := new(nfs4.CREATE_SESSION4res), new(nfs4.SEQUENCE4args), new(nfs4.SEQUENCE4res)
	made.CsrResok4.CsrSessionid[0], asked.SaSessionid[0], answered.SrResok4.SrSessionid[0] = 7, 7, 7
	made.CsrResok4.CsrForeChanAttrs.CaMaxresponsesize = 1000
	c := invariant.New()
	for i, x := range []struct {
		bytes uint64
		want  int
	}{{2000, 0}, {1000, 0}, {1001, 1}, {0, 0}} {
		y := compound(int64(i), asked, answered)
		if i == 0 {
			y = compound(0, new(nfs4.CREATE_SESSION4args), made)
		}
		y.Bytes = x.bytes
		if found := c.Judge(&y); len(found) != x.want {
			t.Errorf("%d bytes: %+v", x.bytes, found)
		}
	}
}
