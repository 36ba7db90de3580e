package judge

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/replay/judge/verdict"
)

// comparison walks two results side by side and notes where they differ. The caller decides what
// that means for the verdict.
type comparison struct {
	want, have tree
	ignore     map[string]bool // fields that are not compared, and whether one was there
	subject    subject

	equivalent codeSet          // differences that do not matter
	explained  []verdict.Reason // those that another call explains
	different  []verdict.Reason // the others
	// missing and extra are names of directory entries that only one side has.
	missing, extra []string
	names          map[string]int32
}

// subject describes the object of results. A nil function means no.
type subject struct {
	// directory reports whether operation i of a COMPOUND, -1 outside, is about a directory;
	// exclusive, whether its results follow an exclusive create; prepared, whether the object was made before the replay.
	directory, exclusive, prepared func(i int) bool
	// moment is the reason why fields that change with the object may have been read at a
	// different time; its Code is None if they were not.
	moment  func() verdict.Reason
	reading bool // the results of a READ of NFSv3
	limited bool // the server returned its maximum, which is less than requested
}

func (s *subject) at(i int) place {
	is := func(f func(int) bool) bool { return f != nil && f(i) }
	return place{directory: is(s.directory), exclusive: is(s.exclusive), prepared: is(s.prepared)}
}

// place describes the object that fields belong to.
type place struct {
	directory, symlink, exclusive, prepared bool

	entry  string // its name in the listing that it is part of
	listed bool
}

// codeSet is a set of codes below 64.
type codeSet uint64

func (s *codeSet) add(c verdict.Code) { *s |= 1 << c }

// maxDifferences is how many differences of one reply are listed.
const maxDifferences = 8

// maxDepth is how deep results may be nested.
const maxDepth = 31

func (c *comparison) reset() {
	c.want.clear()
	c.have.clear()
	c.equivalent = 0
	c.different, c.missing, c.extra, c.explained = c.different[:0], c.missing[:0], c.extra[:0], c.explained[:0]
}

// run compares c.want with c.have, which have been filled.
func (c *comparison) run() {
	var path [maxDepth + 1]string
	c.level(-1, -1, path[:0], c.subject.at(-1))
}

// level compares the children of two nodes.
func (c *comparison) level(want, have int32, path []string, at place) {
	if len(path) >= maxDepth {
		return
	}
	if first, end := c.want.children(want); first < end && c.want.nodes[first].kind == group && isEntry(&c.want.nodes[first]) || c.firstEntry(have) {
		c.entries(want, have, path)
		return
	}
	c.expected(want, have, path, at)
	c.unexpected(want, have, path, at)
}

// expected compares the fields of the captured reply with those of the live one.
func (c *comparison) expected(want, have int32, path []string, at place) {
	hint := have + 1
	first, end := c.want.children(want)
	for i := first; i < end; i = c.want.nodes[i].end {
		n := &c.want.nodes[i]
		if n.name == "lxr_names" {
			if i == c.want.child(want, n.name, -1, -1) {
				c.entries(want, have, path)
			}
			continue
		}
		if n.name == "type" && n.kind == enum {
			at.directory, at.symlink = n.num == 2, n.num == 5 // the next fields are about that
		}
		if n.name == contents {
			if i == c.want.first(want, contents) {
				c.contents(want, have, path)
			}
			continue
		}
		if want < 0 && n.index >= 0 {
			at = c.subject.at(n.index)
		}
		k := c.class(path, n.name)
		j := c.have.child(have, n.name, n.index, hint)
		if j >= 0 {
			hint = c.have.nodes[j].end
		}
		if k != own {
			c.pair(k, i, j, path, at)
		}
	}
}

// class is the class of a field.
func (c *comparison) class(path []string, name string) class {
	if _, ok := c.ignore[name]; ok {
		c.ignore[name] = true
		return own
	}
	return classOf(path, name)
}

// pair compares node i of the captured reply with node j of the live one; -1 means that it has
// none.
func (c *comparison) pair(k class, i, j int32, path []string, at place) {
	n := &c.want.nodes[i]
	full := append(path, n.name)
	if n.index >= 0 {
		full[len(full)-1] = fmt.Sprintf("%s[%d]", n.name, n.index)
	}
	if j < 0 {
		c.note(k, full, n, nil, at)
		return
	}
	h := &c.have.nodes[j]
	switch {
	case n.kind != group || h.kind != group:
		if !n.equal(h) {
			c.note(k, full, n, h, at)
		}
	case k == limit:
		if !c.same(i, j) {
			c.note(k, full, n, h, at)
		}
	case k == optional && n.name != "attributes":
		// For instance a delegation: another kind is another choice of the server.
		before := len(c.different)
		c.level(i, j, full, at)
		if len(c.different) > before {
			c.different = c.different[:before]
			c.note(k, full, n, h, at)
		}
	default:
		// Optional fields are compared if both servers have sent them.
		c.level(i, j, full, at)
	}
}

// unexpected notes fields that only the live server has sent.
func (c *comparison) unexpected(want, have int32, path []string, at place) {
	hint := want + 1
	first, end := c.have.children(have)
	for j := first; j < end; j = c.have.nodes[j].end {
		n := &c.have.nodes[j]
		if n.name == "lxr_names" {
			if j == c.have.child(have, n.name, -1, -1) && c.want.child(want, n.name, -1, -1) < 0 {
				c.entries(want, have, path) // the captured reply has none
			}
			continue
		}
		if n.name == contents {
			if j == c.have.first(have, contents) && c.want.first(want, contents) < 0 {
				c.contents(want, have, path)
			}
			continue
		}
		if i := c.want.child(want, n.name, n.index, hint); i >= 0 {
			hint = c.want.nodes[i].end
		} else if k := c.class(path, n.name); k != own {
			c.note(k, append(path, n.name), nil, n, at)
		}
	}
}

// entries compares lists by name, in any order. Their sibling fields (the end of the list) are up
// to the caller.
func (c *comparison) entries(want, have int32, path []string) {
	if c.names == nil {
		c.names = map[string]int32{}
	}
	clear(c.names)
	each := func(t *tree, parent int32, f func(i int32)) {
		first, end := t.children(parent)
		for i := first; i < end; i = t.nodes[i].end {
			if isEntry(&t.nodes[i]) {
				f(i)
			}
		}
	}
	each(&c.have, have, func(j int32) { c.names[c.have.entryName(j)] = j })
	each(&c.want, want, func(i int32) {
		name := c.want.entryName(i)
		j, ok := c.names[name]
		if !ok {
			if name != "." && name != ".." {
				c.missing = append(c.missing, name)
			}
			return
		}
		delete(c.names, name)
		if c.want.nodes[i].kind == group && name != ".." {
			c.level(i, j, append(path, strconv.Quote(name)), place{entry: name, listed: true})
		}
	})
	for name := range c.names {
		if name != "." && name != ".." {
			c.extra = append(c.extra, name)
		}
	}
	slices.Sort(c.extra)
}

func (c *comparison) firstEntry(have int32) bool {
	i := have + 1
	return i < int32(len(c.have.nodes)) && (have < 0 || i < c.have.nodes[have].end) && isEntry(&c.have.nodes[i])
}

// isEntry reports whether a node is one of a list whose order the server chooses:
// directory entries, names of extended attributes.
func isEntry(n *leaf) bool {
	return n.index >= 0 && strings.HasPrefix(n.typ, "entry") || n.name == "lxr_names"
}

// same compares everything below two nodes.
func (c *comparison) same(i, j int32) bool {
	a, b := c.want.nodes[i:c.want.nodes[i].end], c.have.nodes[j:c.have.nodes[j].end]
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		if a[k].name != b[k].name || !a[k].equal(&b[k]) {
			return false
		}
	}
	return true
}

// samePast reports whether a reply has times and change attributes, and all are as captured. Two servers do not execute a call in the same
// nanosecond.
func (c *comparison) samePast() (same bool) {
	for i := range c.have.nodes {
		n := &c.have.nodes[i]
		if n.kind != moment && n.name != "change" && n.name != "before" && n.name != "after" || n.end > int32(i)+1 {
			continue
		}
		if i >= len(c.want.nodes) || c.want.nodes[i].name != n.name || !c.want.nodes[i].equal(n) {
			return false
		}
		same = true
	}
	return same
}

// note records a difference; one side may have nothing.
func (c *comparison) note(k class, path []string, want, have *leaf, at place) {
	if code := harmless(k, path, want, have, at); code != verdict.None {
		c.equivalent.add(code)
		return
	}
	w, h := "absent", "absent"
	switch {
	case want != nil && have != nil:
		w, h = values(want, have)
	case want != nil:
		w = want.value()
	case have != nil:
		h = have.value()
	}
	c.differs(path, w, h, at)
}

// harmless is the reason why a difference does not matter; None if it does.
func harmless(k class, path []string, want, have *leaf, at place) verdict.Code {
	name := ""
	if want != nil {
		name = want.name
	} else {
		name = have.name
	}
	switch {
	case slices.Contains(path, "eir_state_protect"):
		return verdict.StateProtection // the plan asks for SP4_NONE
	case k == limit:
		return verdict.ServerLimits
	case name == "owner" || name == "owner_group":
		if want == nil || have == nil || sameUser(string(want.bytes), string(have.bytes)) {
			return verdict.UserNames
		}
	case k == optional, (want == nil || have == nil) && underOptional(path):
		return verdict.Optional
	case (name == "sr_offset" || name == "sr_eof") && at.prepared && strings.HasPrefix(path[0], "SEEK["):
		return verdict.Holes // the preparation has written over them; whether data are in what it calls a hole is judged elsewhere
	case name == "length" && slices.Contains(path, "denied") && want != nil && have != nil && min(want.num, have.num) >= 1<<62:
		return verdict.LockEnd
	default:
		return at.harmless(name)
	}
	return verdict.None
}

// harmless is the reason why an attribute of this object is not significant; None if it is.
func (p *place) harmless(name string) verdict.Code {
	switch {
	case name == "mode" && p.symlink:
		return verdict.LinkMode
	case p.exclusive && (name == "mode" || name == "size"):
		return verdict.ExclusiveCreate
	case p.directory && (name == "size" || name == "nlink" || name == "numlinks"):
		return verdict.DirectorySize
	}
	return verdict.None
}

// differs records a difference that matters, unless another call explains it.
func (c *comparison) differs(path []string, want, have string, at place) {
	name := path[len(path)-1]
	if squashes(path, want, have) {
		if why := (verdict.Reason{Code: verdict.Squashed, Now: have}); !slices.Contains(c.explained, why) {
			c.explained = append(c.explained, why)
		}
		return
	}
	// The end of a listing is judged separately. How much a READ returns depends on the size of
	// the file; the bytes are compared elsewhere, and strictly.
	size := name == contents || (name == "data" || name == "count") && (c.subject.reading || strings.HasPrefix(path[0], "READ["))
	if c.subject.limited && (size || name == "eof") {
		c.equivalent.add(verdict.ServerLimits) // a client reads the rest
		return
	}
	if size || transient(name) && !listEnd(name, path) {
		if why := c.subject.why(); why.Code != verdict.None {
			if !slices.Contains(c.explained, why) {
				c.explained = append(c.explained, why)
			}
			return
		}
	}
	if len(c.different) < maxDifferences {
		c.different = append(c.different, verdict.Reason{Code: verdict.FieldDiffers, Now: have, Was: want,
			At: verdict.Place{Path: strings.Join(path, "."), Field: name, Entry: at.entry, Listed: at.listed}})
	}
}

func (s *subject) why() verdict.Reason {
	if s.moment == nil {
		return verdict.Reason{}
	}
	return s.moment()
}

// listEnd reports whether a field says that a listing is at its end.
func listEnd(name string, path []string) bool { return name == "eof" && slices.Contains(path, "reply") }
