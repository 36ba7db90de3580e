package judge

import (
	"strconv"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// clocks checks that attributes that record changes move on: a change attribute, a ctime or an
// mtime that a reply had before a call was sent must not come back after that call has changed
// the object (RFC 8881, section 5.8.1.4; RFC 1813, section 2.6). It needs no captured value.
//
// A server may use the same time for two changes within one tick of its clock. So the call has to
// have been sent at least a tick after the reply with the old value came: whatever the server's
// clock says, it has then advanced by at least a tick.
type clocks struct {
	tick    time.Duration
	fine    bool // some time has digits below a millisecond: the file system counts in less
	objects map[int]*clock
}

// maxClocks is how many objects are followed.
const maxClocks = 1 << 16

// coarse is the possible unit of time of a file system that shows no times below a millisecond:
// FAT uses 2 s.
const coarse = 2 * time.Second

type clock struct {
	change, ctime, mtime reading
	// data and any are the latest calls that have changed the bytes, and anything at all.
	data, any interval
}

// reading is a value, and the time of the first reply that had it.
type reading struct {
	is    uint64
	since time.Time
	known bool
}

type interval struct{ sent, replied time.Time }

func (c *clocks) of(object int) *clock {
	k := c.objects[object]
	if k == nil && len(c.objects) < maxClocks {
		if c.objects == nil {
			c.objects = map[int]*clock{}
		}
		k = &clock{}
		c.objects[object] = k
	}
	return k
}

// granularity is how long the server may show the same time.
func (c *clocks) granularity() time.Duration {
	if !c.fine {
		return max(c.tick, coarse)
	}
	return c.tick
}

// observation is what a reply says about an object after operation at.
type observation struct {
	at, object       int
	change           uint64
	hasChange        bool
	ctime, mtime     time.Time
	atime            time.Time
	hasC, hasM, hasA bool
}

// movement is what one call has changed for certain, and which times it has set.
type movement struct {
	done []struct {
		at, object int
		data       bool
	}
	sets []struct {
		at, object   int
		mtime, atime *time.Time
	}
}

// still checks a reply, and learns what it says and what its call has changed.
func (j *Judge) still(v *verdict.Judgement, r *Reply) {
	h := j.history(r.Clone)
	c := &h.clocks
	c.tick = max(c.tick, j.tick)
	var m movement
	h.expected.Surely(&expected.Call{Op: r.Op, Result: r.Result}, func(at, object int, data bool) {
		m.done = append(m.done, struct {
			at, object int
			data       bool
		}{at, object, data})
	})
	h.expected.Sets(r.Op, func(at, object int, mtime, atime *time.Time) {
		if mtime != nil || atime != nil {
			m.sets = append(m.sets, struct {
				at, object   int
				mtime, atime *time.Time
			}{at, object, mtime, atime})
		}
	})
	observe(r.Op, r.Result, c, func(o *observation) {
		if k := c.of(o.object); k != nil && o.object != 0 {
			c.moved(v, r, k, o, &m)
			j.timesSet(v, r.Op, o, &m)
		}
	})
	now := interval{r.Issued, r.Replied}
	for _, d := range m.done {
		if k := c.of(d.object); k != nil {
			k.any.later(now)
			if d.data {
				k.data.later(now)
			}
		}
	}
	for _, s := range m.sets {
		// The same time may be set twice.
		if k := c.objects[s.object]; k != nil && s.mtime != nil {
			k.data, k.mtime.since = interval{}, r.Replied
		}
	}
}

// moved checks that a value that records changes has moved on, and keeps it.
func (c *clocks) moved(v *verdict.Judgement, r *Reply, k *clock, o *observation, m *movement) {
	data, any := k.data.before(r.Issued), k.any.before(r.Issued)
	for _, d := range m.done {
		if d.object == o.object && d.at <= o.at {
			any = r.Issued
			if d.data {
				data = r.Issued
			}
		}
	}
	check := func(was *reading, name string, is uint64, changed time.Time, text func() string) {
		if was.known && was.is == is && changed.After(was.since) && changed.Sub(was.since) >= c.granularity() {
			v.Worsen(verdict.Different, verdict.Reason{Code: verdict.StoodStill, Now: text(), At: verdict.Place{Path: name, Field: name}})
		}
		if !was.known || was.is != is {
			*was = reading{is, r.Replied, true}
		}
	}
	if o.hasChange {
		check(&k.change, "change", o.change, any, func() string { return strconv.FormatUint(o.change, 10) })
	}
	if o.hasC {
		check(&k.ctime, "ctime", uint64(o.ctime.UnixNano()), any, func() string { return stamp(o.ctime) })
	}
	if o.hasM {
		check(&k.mtime, "mtime", uint64(o.mtime.UnixNano()), data, func() string { return stamp(o.mtime) })
	}
}

// timesSet checks that the times that a call has set are shown.
func (j *Judge) timesSet(v *verdict.Judgement, op *plan.Op, o *observation, m *movement) {
	check := func(name string, was *time.Time, has bool, is time.Time) {
		if was != nil && has && !expected.SameTime(*was, is) {
			v.Worsen(verdict.Different, verdict.Reason{Code: verdict.TimeNotSet, Now: stamp(is), Was: stamp(*was), At: verdict.Place{Path: name, Field: name}})
		}
	}
	for _, s := range m.sets {
		if s.object == o.object && s.at <= o.at && !j.disturbed(op, s.object) {
			check("mtime", s.mtime, o.hasM, o.mtime)
			check("atime", s.atime, o.hasA, o.atime)
		}
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// before is the time at which a call was sent, if its reply had come when another one was sent;
// zero otherwise.
func (i *interval) before(sent time.Time) time.Time {
	if i.replied.IsZero() || i.replied.After(sent) {
		return time.Time{}
	}
	return i.sent
}

func (i *interval) later(than interval) {
	if than.sent.After(i.sent) {
		*i = than
	}
}

// disturbed reports whether another call that changes an object was in flight together with an
// op.
func (j *Judge) disturbed(o *plan.Op, object int) bool {
	found := false
	j.moments.together(o, changeable{object: object}, func(*plan.Op) bool { found = true; return false })
	return found
}

// objects3 returns the objects of the first two handles of a procedure of NFSv3, and the one whose
// handle it returns.
func objects3(o *plan.Op) (first, second, made int) {
	for i := range o.Args {
		if a := &o.Args[i]; a.Kind == plan.FieldHandle {
			if first == 0 {
				first = a.Ref
			} else if second == 0 {
				second = a.Ref
			}
		}
	}
	for i := range o.Binds {
		if b := &o.Binds[i]; b.Kind == plan.FieldHandle && b.Name == "" && b.NameBytes == nil {
			made = b.Ref
		}
	}
	return first, second, made
}

// observe calls f for the attributes that a reply has, in order.
func observe(o *plan.Op, res xdr.Message, c *clocks, f func(*observation)) {
	if m, ok := res.(*nfs4.CompoundRes); ok {
		observe4(o, m, c, f)
		return
	}
	if code, _ := StatusOf(res); code != 0 {
		return
	}
	first, second, made := objects3(o)
	fattr := func(object int, a *nfs3.Fattr3) {
		moment := func(t nfs3.Nfstime3) time.Time {
			c.fine = c.fine || t.Nseconds%1e6 != 0
			return time.Unix(int64(t.Seconds), int64(t.Nseconds))
		}
		f(&observation{at: -1, object: object, ctime: moment(a.Ctime), mtime: moment(a.Mtime), atime: moment(a.Atime), hasC: true, hasM: true, hasA: true})
	}
	post := func(object int, p *nfs3.PostOpAttr) {
		if p.AttributesFollow {
			fattr(object, &p.Attributes)
		}
	}
	if made3(res, func(object, dir *nfs3.PostOpAttr) { post(made, object); post(first, dir) }) {
		return
	}
	switch m := res.(type) {
	case *nfs3.FSINFO3res:
		d := m.Resok.TimeDelta
		c.tick = max(c.tick, min(time.Duration(d.Seconds)*time.Second+time.Duration(d.Nseconds), time.Hour))
	case *nfs3.GETATTR3res:
		fattr(first, &m.Resok.ObjAttributes)
	case *nfs3.SETATTR3res:
		post(first, &m.Resok.ObjWcc.After)
	case *nfs3.ACCESS3res:
		post(first, &m.Resok.ObjAttributes)
	case *nfs3.READ3res:
		post(first, &m.Resok.FileAttributes)
	case *nfs3.WRITE3res:
		post(first, &m.Resok.FileWcc.After)
	case *nfs3.COMMIT3res:
		post(first, &m.Resok.FileWcc.After)
	case *nfs3.REMOVE3res:
		post(first, &m.Resok.DirWcc.After)
	case *nfs3.RMDIR3res:
		post(first, &m.Resok.DirWcc.After)
	case *nfs3.RENAME3res:
		post(first, &m.Resok.FromdirWcc.After)
		if second != first {
			post(second, &m.Resok.TodirWcc.After)
		}
	case *nfs3.LINK3res:
		post(first, &m.Resok.FileAttributes)
		post(second, &m.Resok.LinkdirWcc.After)
	}
}

// made3 calls f for the attributes of an object that NFSv3 has found or made, and for those of
// its directory; it reports whether results have these.
func made3(res xdr.Message, f func(object, dir *nfs3.PostOpAttr)) bool {
	switch m := res.(type) {
	case *nfs3.LOOKUP3res:
		f(&m.Resok.ObjAttributes, &m.Resok.DirAttributes)
	case *nfs3.CREATE3res:
		f(&m.Resok.ObjAttributes, &m.Resok.DirWcc.After)
	case *nfs3.MKDIR3res:
		f(&m.Resok.ObjAttributes, &m.Resok.DirWcc.After)
	case *nfs3.SYMLINK3res:
		f(&m.Resok.ObjAttributes, &m.Resok.DirWcc.After)
	case *nfs3.MKNOD3res:
		f(&m.Resok.ObjAttributes, &m.Resok.DirWcc.After)
	default:
		return false
	}
	return true
}

// observe4 calls f for the attributes and change_infos of a COMPOUND's results.
func observe4(o *plan.Op, m *nfs4.CompoundRes, c *clocks, f func(*observation)) {
	info := func(at, object int, i *nfs4.ChangeInfo4) {
		f(&observation{at: at, object: object, change: i.After, hasChange: true})
	}
	before, saved := 0, 0
	for i := range m.Ops {
		object := workload.ObjectAt(o, i)
		if code, _, _ := m.Ops[i].Status(); code != 0 {
			return
		}
		switch r := m.Ops[i].Body.(type) {
		case *nfs4.GETATTR4res:
			attributes4(i, object, &r.Resok4.ObjAttributes, c, f)
		case *nfs4.CREATE4res:
			info(i, before, &r.Resok4.Cinfo)
		case *nfs4.REMOVE4res:
			info(i, before, &r.Resok4.Cinfo)
		case *nfs4.SETXATTR4res:
			info(i, object, &r.SxrInfo)
		case *nfs4.REMOVEXATTR4res:
			info(i, object, &r.RxrInfo)
		case *nfs4.LINK4res:
			info(i, before, &r.Resok4.Cinfo)
		case *nfs4.RENAME4res:
			info(i, saved, &r.Resok4.SourceCinfo)
			if before != saved {
				info(i, before, &r.Resok4.TargetCinfo)
			}
		}
		if e := ops.Operation(m.Ops[i].Number); e != nil && e.Effect == ops.Saves {
			saved = object
		}
		before = object
	}
}

func attributes4(at, object int, x *nfs4.Fattr4, c *clocks, f func(*observation)) {
	a, err := x.Attrs()
	if err != nil {
		return
	}
	moment := func(t nfs4.Nfstime4) time.Time {
		c.fine = c.fine || t.Nseconds%1e6 != 0
		return time.Unix(t.Seconds, int64(t.Nseconds))
	}
	if a.Has(nfs4.FATTR4_TIME_DELTA) {
		d := a.TimeDelta
		c.tick = max(c.tick, min(time.Duration(min(d.Seconds, 3600))*time.Second+time.Duration(d.Nseconds), time.Hour))
	}
	b := observation{at: at, object: object}
	if a.Has(nfs4.FATTR4_CHANGE) {
		b.change, b.hasChange = a.Change, true
	}
	if a.Has(nfs4.FATTR4_TIME_METADATA) {
		b.ctime, b.hasC = moment(a.TimeMetadata), true
	}
	if a.Has(nfs4.FATTR4_TIME_MODIFY) {
		b.mtime, b.hasM = moment(a.TimeModify), true
	}
	if a.Has(nfs4.FATTR4_TIME_ACCESS) {
		b.atime, b.hasA = moment(a.TimeAccess), true
	}
	f(&b)
}
