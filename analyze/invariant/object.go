package invariant

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// facts is the information of one reply about an object.
type facts struct {
	has  uint16 // bits of fact
	fact [factCount]uint64
}

// Facts. version is the change attribute (NFSv3: the change time). The facts from size on cannot change without it.
const (
	version = iota
	kind
	fileid
	size
	mode
	links
	owner
	group
	factCount
)

// attributes are the numbers of the facts.
var attributes = [factCount]uint32{
	version: nfs4.FATTR4_CHANGE, kind: nfs4.FATTR4_TYPE, fileid: nfs4.FATTR4_FILEID, size: nfs4.FATTR4_SIZE, mode: nfs4.FATTR4_MODE,
	links: nfs4.FATTR4_NUMLINKS, owner: nfs4.FATTR4_OWNER, group: nfs4.FATTR4_OWNER_GROUP,
}

func (f *facts) set(n int, v uint64) { f.has, f.fact[n] = f.has|1<<n, v }

func (f *facts) known(n int) bool { return f.has&(1<<n) != 0 }

// recentObject caches an object, which saves a lookup in the map.
type recentObject struct {
	key key
	o   *object
}

const recentObjects = 256

// object is what the server has reported about a file handle.
type object struct {
	facts
	number   uint64 // of the last Exchange with this object
	together uint64 // of the last Exchange that overlapped another one
	since    int64  // time of the first reply with this version
	seen     int64  // time of the latest call whose reply had this version
	replied  int64  // time of the latest reply about the object
	// before is the version before the change that led to the current one.
	before    uint64
	hasBefore bool
	// own is the version that the object had by its attributes when change_info gave one of another size.
	own    uint64
	hasOwn bool
}

// near reports whether a version may follow another one after some changes. Times in nanoseconds and counters are never near each other.
func near(from, to uint64) bool { return to-from < 1<<24 }

func (c *Checker) key(handle []byte) key { return key{c.x.Server, sum(handle)} }

// object returns what is known of a handle, and whether it is new; nil without a handle.
func (c *Checker) object(handle []byte) (o *object, fresh bool) {
	if len(handle) == 0 {
		return nil, false
	}
	k := c.key(handle)
	recent := &c.recent[k.handle%recentObjects]
	if recent.o != nil && recent.key == k {
		return recent.o, false
	}
	if o = c.objects[k]; o == nil {
		fresh = true
		if old, full := c.order.add(k, maxObjects); full {
			o = c.objects[old]
			delete(c.objects, old)
			c.recent[old.handle%recentObjects] = recentObject{}
			*o = object{}
		} else {
			o = new(object)
		}
		c.objects[k] = o
	}
	*recent = recentObject{k, o}
	return o, fresh
}

// observe compares what a reply says about an object with what replies before it said.
func (c *Checker) observe(o *object, fresh bool, f *facts) {
	x := c.x
	switch {
	case o == nil:
		return
	case fresh:
		*o = object{facts: *f, number: c.number, since: x.Replied, seen: x.Sent, replied: x.Replied}
		return
	case x.Again:
		return
	}
	c.judged |= 1 << Moved
	own := o.number == c.number // a COMPOUND sees what it has changed itself
	if !own {
		if x.Sent <= o.replied {
			o.together = c.number
		} else if *f == o.facts && f.known(version) {
			o.number, o.seen, o.replied = c.number, x.Sent, x.Replied
			return
		}
	}
	for _, n := range [...]int{kind, fileid} {
		if f.known(n) && o.known(n) && f.fact[n] != o.fact[n] {
			c.add(Breach{Kind: Replaced, Attribute: attributes[n], Was: o.fact[n], Now: f.fact[n]})
		}
		if f.known(n) {
			o.set(n, f.fact[n])
		}
	}
	o.number, o.replied = c.number, max(o.replied, x.Replied)
	switch {
	case o.together == c.number: // another call overlaps: the order of execution is not known
		o.has &= 1<<kind | 1<<fileid
		o.hasBefore, o.hasOwn = false, false
		return
	case !f.known(version):
		return
	case o.known(version) && f.fact[version] == o.fact[version]:
		if !own {
			c.unchanged(o, f)
			o.seen = x.Sent
		}
	default:
		if !own {
			c.wentBack(o, f.fact[version])
		}
		o.has &= 1<<kind | 1<<fileid
		o.since, o.seen, o.hasBefore, o.hasOwn = x.Replied, x.Sent, false, false
	}
	for n := range factCount {
		if f.known(n) {
			o.set(n, f.fact[n])
		}
	}
}

// wentBack judges a version that an object may have had before. Change times of NFSv3 grow; change attributes need not.
func (c *Checker) wentBack(o *object, now uint64) {
	switch was := o.fact[version]; {
	case c.at < 0:
		c.judged |= 1 << TimeBack
		c.earlierTime(was, now)
	case o.hasOwn && near(o.own, now) && was > now && was-now > 1<<40:
		c.add(Breach{Kind: ChangeForeign, Attribute: nfs4.FATTR4_CHANGE, Was: was, Now: now})
	case o.hasBefore && now == o.before:
		c.add(Breach{Kind: ChangeBack, Attribute: nfs4.FATTR4_CHANGE, Was: was, Now: now})
	}
}

// earlierTime judges the change time that a file of NFSv3 has.
func (c *Checker) earlierTime(was, now uint64) {
	if now < was {
		c.add(Breach{Kind: TimeBack, Attribute: nfs4.FATTR4_TIME_METADATA, Was: was, Now: now})
	}
}

// unchanged compares the facts that cannot change without the version, once that has been constant for a while.
func (c *Checker) unchanged(o *object, f *facts) {
	if o.seen-o.since < c.Settled {
		return
	}
	for n := size; n < factCount; n++ {
		if f.known(n) && o.known(n) && f.fact[n] != o.fact[n] {
			c.add(Breach{Kind: Moved, Attribute: attributes[n], Was: o.fact[n], Now: f.fact[n]})
		}
	}
}

// changed judges the versions of a directory before and after an operation. must says that the operation has changed the directory.
func (c *Checker) changed(directory []byte, i *nfs4.ChangeInfo4, must bool) {
	if !i.Atomic {
		return
	}
	c.judged |= 1 << ChangeKept
	if must && i.Before == i.After {
		c.add(Breach{Kind: ChangeKept, Attribute: nfs4.FATTR4_CHANGE, Was: i.Before, Now: i.After})
		return
	}
	var f facts
	o, fresh := c.object(directory)
	foreign, own := false, uint64(0)
	if o != nil && o.known(version) {
		own = o.fact[version]
		foreign = i.Before > own && i.Before-own > 1<<40
	}
	f.set(version, i.Before)
	c.observe(o, fresh, &f)
	f.set(version, i.After)
	c.observe(o, false, &f)
	if o != nil && o.number == c.number && i.Before != i.After && o.known(version) && o.fact[version] == i.After {
		o.before, o.hasBefore = i.Before, true
		o.own, o.hasOwn = own, foreign
	}
}
