package readback

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
)

// perhapsTwice is the reason for not comparing an object that may exist twice.
const perhapsTwice = "an object that was prepared under a made-up name, and that a call may have made as well"

// object compares the attributes and the bytes of one object.
func (r *reader) object(id int) error {
	want, gone := r.expected.Object(id)
	if gone || !r.load.Below(id) {
		return nil // its handle may be stale
	}
	h := r.found[id].handle
	if h == nil {
		h = r.w.Objects[id].Handle
	}
	unseen := r.expected.Unseen(id, 0, math.MaxUint64)
	fail := func(what string, err error) {
		r.left(what, err)
		r.out.Unreadable[r.w.Number] += unseen
	}
	if r.load.Twofold(id) {
		if want.Any() || unseen > 0 {
			fail(perhapsTwice, nil)
		}
		return nil
	}
	if h == nil {
		if want.Any() || unseen > 0 {
			fail("an object whose handle is not known", nil)
		}
		return nil
	}
	a, err := r.fs.Getattr(r.ctx, h)
	if end := r.fatal(err); end != nil {
		return end
	}
	if err != nil {
		fail("an object", err)
		return nil
	}
	r.out.Objects++
	r.attributes(id, &want, &a)
	if err := r.acl(id, h, want.ACL); err != nil {
		return err
	}
	if err := r.xattrs(id, h, want.Xattrs); err != nil {
		return err
	}
	if want.Target != nil && a.Type == client.Symlink {
		text, err := r.fs.Readlink(r.ctx, h)
		if end := r.fatal(err); end != nil {
			return end
		}
		switch {
		case err != nil:
			r.left("a symbolic link", err)
		case !bytes.Equal([]byte(text), want.Target):
			r.wrong(r.path(id), verdict.Reason{Code: verdict.TextDiffers, Now: text, Was: string(want.Target)})
		}
	}
	if a.Type != client.Regular {
		if unseen > 0 {
			r.field(r.path(id), "type", fmt.Sprint(uint32(a.Type)), fmt.Sprint(uint32(client.Regular)))
			r.out.Unreadable[r.w.Number] += unseen
		}
		return nil
	}
	return r.content(id, h, &want, &a)
}

// attributes compares what is known of an object's attributes.
func (r *reader) attributes(id int, want *expected.Attributes, a *client.Attr) {
	path := r.path(id)
	number := func(name string, want *uint32, is int64, base int) {
		if want == nil {
			return
		}
		if is < 0 {
			r.left("the owner of an object, written as a name", nil)
			return
		}
		if r.out.Attributes++; int64(*want) != is {
			r.field(path, name, strconv.FormatInt(is, base), strconv.FormatUint(uint64(*want), base))
		}
	}
	number("mode", want.Mode, int64(a.Mode&0o777), 8)
	number("uid", want.UID, a.UID, 10)
	number("gid", want.GID, a.GID, 10)
	if d := want.Device; d != nil {
		if r.out.Attributes++; *d != (expected.Device{Major: a.Major, Minor: a.Minor}) {
			r.field(path, "rdev", fmt.Sprintf("%d:%d", a.Major, a.Minor), fmt.Sprintf("%d:%d", d.Major, d.Minor))
		}
	}
	if a.Type != client.Directory {
		number("nlink", want.Links, int64(a.Links), 10)
	}
	if want.Size != nil && a.Type == client.Regular {
		if r.out.Attributes++; *want.Size != a.Size {
			r.field(path, "size", strconv.FormatUint(a.Size, 10), strconv.FormatUint(*want.Size, 10))
		}
	}
	moment := func(name string, set *time.Time, is time.Time) {
		if set == nil {
			return
		}
		if r.out.Attributes++; !expected.SameTime(*set, is) {
			r.wrong(path, verdict.Reason{Code: verdict.TimeNotSet, Now: stamp(is), Was: stamp(*set), At: verdict.Place{Path: name, Field: name}})
		}
	}
	moment("mtime", want.Mtime, a.Mtime)
	if a.Type != client.Directory { // it has been listed
		moment("atime", want.Atime, a.Atime)
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// content compares the bytes of a file.
func (r *reader) content(id int, h []byte, want *expected.Attributes, a *client.Attr) error {
	end := a.Size
	if want.Size != nil {
		end = max(end, *want.Size)
	}
	f := &client.File{Handle: h}
	for _, x := range r.expected.Ranges(id, max(end, r.expected.Written(id))) {
		if x.Hole {
			x.To = min(x.To, end)
			if n := x.To - x.From; x.To > x.From && n > r.opt.Holes {
				r.left(fmt.Sprintf("a hole: no more than %d bytes of holes are read", uint64(DefaultHoles)), nil)
				x.To = x.From + r.opt.Holes
			}
			if x.To <= x.From {
				continue
			}
			r.opt.Holes -= x.To - x.From
		}
		if err := r.bytes(id, f, x); err != nil {
			return err
		}
	}
	return nil
}

// maxShort is how many READs of one range may return less than they asked for.
const maxShort = 4096

// bytes compares one range of a file.
func (r *reader) bytes(id int, f *client.File, x expected.Range) error {
	told, short := false, 0
	wrong := func(why verdict.Reason) {
		if !told {
			r.wrong(r.path(id), why)
		}
		told = true
	}
	for from := x.From; from < x.To; {
		p := r.buf[:min(uint64(len(r.buf)), x.To-from)]
		n, eof, err := r.fs.Read(r.ctx, f, from, p)
		if end := r.fatal(err); end != nil {
			return end
		}
		rest := r.expected.Unseen(id, from, x.To)
		if uint64(n) < uint64(len(p)) {
			short++
		}
		if err == nil && short > maxShort {
			r.left("the bytes of a file that the server returns in very small pieces", nil)
			r.out.Unreadable[r.w.Number] += rest
			return nil
		}
		if err != nil {
			r.left("the bytes of a file", err)
			r.out.Unreadable[r.w.Number] += rest
			return nil
		}
		if n == 0 || eof && uint64(n) < uint64(len(p)) {
			if !x.Hole || n > 0 {
				// What is there counts as well.
				if at, code := r.expected.Check(id, from, p[:n], never); code != verdict.None {
					wrong(verdict.Reason{Code: code, N: at})
				}
			}
			if !x.Hole {
				wrong(verdict.Reason{Code: verdict.FileShort, N: from + uint64(n)})
			}
			r.out.Bytes += uint64(n)
			r.out.New[r.w.Number] += rest
			return nil
		}
		r.out.Bytes += uint64(n)
		r.out.New[r.w.Number] += r.expected.Unseen(id, from, from+uint64(n))
		if at, code := r.expected.Check(id, from, p[:n], never); code != verdict.None {
			wrong(verdict.Reason{Code: code, N: at})
		}
		from += uint64(n)
	}
	return nil
}

func never(uint64, uint64) bool { return false }
