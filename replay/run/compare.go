package run

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Verdict is how a reply compares with the captured one, from the best to the
// worst.
type Verdict uint8

// Verdicts.
const (
	// Same: all that a server does not choose by itself is as captured.
	Same Verdict = iota
	// Equivalent: what differs makes no difference to the client, and the
	// reason says what it is.
	Equivalent
	// Omitted: not sent, because on this server there was nothing to do.
	Omitted
	// Better: the captured call failed, and this one did not.
	Better
	// Explained: it differs, and the plan or the server says why: the plan could
	// not tell what the capture depended on, or the server does not support it.
	Explained
	// Worse: the captured call succeeded, and this one did not.
	Worse
	// Different: anything else.
	Different
	// NotSent: the call could not be sent, or not be sent safely.
	NotSent
	// Lost: no reply came.
	Lost

	verdicts = int(Lost) + 1
)

var verdictNames = [...]string{"same", "equivalent", "omitted", "better", "explained", "worse", "different", "not sent", "lost"}

func (v Verdict) String() string { return verdictNames[v] }

// Fine reports whether nothing is wrong that wants an explanation.
func (v Verdict) Fine() bool { return v <= Explained }

// MarshalText is for JSON.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// class says what a difference in a field means.
type class uint8

const (
	matters class = iota
	// own is what every server chooses by itself: handles, numbers, times of
	// its clock. It is not compared.
	own
	// limit is a property of the server or its file system.
	limit
	// optional is what a server may leave out.
	optional
)

// fields classifies what a field's name does not make matter. A name with a
// dot is that of a field and what it is in.
var fields = map[string]class{
	// Identity.
	"fileid": own, "fsid": own, "mounted_on_fileid": own, "filehandle": own, "object": own, "handle.data": own,
	"fhandle": own, "rdev": matters, "sessionid": own, "sr_sessionid": own, "csr_sessionid": own,
	"clientid": own, "eir_clientid": own, "setclientid_confirm": own, "eir_sequenceid": own, "csr_sequence": own,
	"eir_server_owner": own, "eir_server_scope": own, "eir_server_impl_id": own, "nii_name": own,
	"stateid": own, "open_stateid": own, "lock_stateid": own, "deleg_stateid": own, "other": own, "seqid": own,
	"cookie": own, "cookieverf": own, "verf": own, "writeverf": own, "wr_writeverf": own, "lxr_cookie": own,
	"sr_sequenceid": own, "sr_slotid": own, "sr_highest_slotid": own, "sr_target_highest_slotid": own, "sr_status_flags": own,
	// Time, and what counts changes.
	"atime": own, "mtime": own, "ctime": own, "change": own, "before": own, "after": own, "cinfo": own,
	"time_access": own, "time_modify": own, "time_metadata": own, "time_create": own, "time_backup": own, "time_delete": own,
	"source_cinfo": own, "target_cinfo": own, "sxr_info": own, "rxr_info": own,
	// Space.
	"used": own, "space_used": own, "tbytes": own, "fbytes": own, "abytes": own, "tfiles": own, "ffiles": own, "afiles": own, "invarsec": own,
	"space_total": own, "space_free": own, "space_avail": own, "files_total": own, "files_free": own, "files_avail": own,
	"quota_avail_hard": own, "quota_avail_soft": own, "quota_used": own, "space_freed": own,
	// What the server and its file system can do.
	"rtmax": limit, "rtpref": limit, "rtmult": limit, "wtmax": limit, "wtpref": limit, "wtmult": limit, "dtpref": limit,
	"maxfilesize": limit, "maxread": limit, "maxwrite": limit, "maxname": limit, "maxlink": limit, "linkmax": limit, "name_max": limit,
	"time_delta": limit, "properties": limit, "lease_time": limit, "supported_attrs": limit, "suppattr_exclcreat": limit,
	"fh_expire_type": limit, "aclsupport": limit, "xattr_support": limit, "layout_blksize": limit, "clone_blksize": limit,
	"case_insensitive": limit, "case_preserving": limit, "no_trunc": limit, "chown_restricted": limit, "link_support": limit, "symlink_support": limit,
	"change_attr_type": limit, "fs_layout_types": limit, "open_arguments": limit, "cansettime": limit, "homogeneous": limit, "unique_handles": limit,
	"eir_flags": limit, "csr_flags": limit, "csr_fore_chan_attrs": limit, "csr_back_chan_attrs": limit, "rflags": limit, "supported": limit,
	"acl": limit, "aclcnt": limit, "dfaclcnt": limit, "aclent": limit, "dfaclent": limit, "flavor": limit, "auth_flavors": limit, "sec_label": limit,
	"numlinks": matters, "nlink": matters,
	// What a server may do or not.
	"delegation": optional, "attributes_follow": optional, "handle_follows": optional, "obj_attributes.attributes": optional,
	"attrset": optional, "attrsset": optional, "committed": optional, "wr_committed": optional, "rdattr_error": optional,
	"mask": limit, "SECINFO": limit,
	// The lists of NFSACL, unlike the attribute of NFSv4.
	"resok.acl": matters, "acl.mask": matters, "acl.aclcnt": matters, "acl.dfaclcnt": matters, "acl.aclent": matters, "acl.dfaclent": matters,
	"SECINFO_NO_NAME": limit,
}

// reasons of differences that make none.
const (
	reasonLimit      = "the server's own limits and properties"
	reasonOptional   = "what a server may leave out or add"
	reasonDirSize    = "size and link count of a directory"
	reasonAbove      = "the directories above the base are the server's own"
	reasonOthers     = "somebody who is not in the capture had changed the object"
	reasonLinkMode   = "the mode of a symbolic link means nothing"
	reasonExclusive  = "what an exclusive create leaves undefined until the attributes are set"
	reasonUsers      = "users and groups are written in another way"
	reasonACLOrder   = "the entries of an access control list in another order, or a mask that says nothing more"
	reasonNoACL      = "the server does not have NFSACL"
	reasonProtection = "machine credentials need RPCSEC_GSS: the server's state is not protected by one"
	reasonCut        = "the capture lacks parts of calls before it, one of which may have made what is missing here"
	reasonPartial    = "the capture lacks a part of the results: only their status was compared"
	reasonLockEnd    = "the server has its own number for a lock up to the end of the file"
	reasonEntries    = "the server orders and splits directories its own way"
	noteRelaid       = "the captured chunks do not fit this server's handles: the endpoint chose its own"
	noteReplyRoom    = "the captured chunks have no room for the reply at this inline threshold: the endpoint chose its own"
	noteNoDelegation = "the server gave no delegation: an open or the anonymous state id was used instead"
)

// comparison walks two results side by side.
type comparison struct {
	want, have tree
	ignore     map[string]bool
	equivalent map[string]bool // reasons
	different  []string        // places with both values
	// missing and extra are names of directory entries that only one side has.
	missing, extra []string
	names          map[string]int32
	// directory tells whether operation i of a COMPOUND is about a directory;
	// exclusive, whether what it tells follows an exclusive create.
	directory, exclusive func(i int) bool
	// moment says why what changes with the object may be of another moment;
	// empty if it may not. explained are the reasons that were needed.
	moment    func() string
	explained []string
	reading   bool // the results are those of a READ of NFSv3
}

func (c *comparison) reset() {
	clear(c.equivalent)
	if c.equivalent == nil {
		c.equivalent = map[string]bool{}
	}
	if c.directory == nil {
		c.directory = func(int) bool { return false }
	}
	if c.exclusive == nil {
		c.exclusive = func(int) bool { return false }
	}
	if c.moment == nil {
		c.moment = func() string { return "" }
	}
	c.different, c.missing, c.extra, c.explained = c.different[:0], c.missing[:0], c.extra[:0], c.explained[:0]
}

// maxDifferences is how many differences of one reply are listed.
const maxDifferences = 8

func (c *comparison) differs(path []string, want, have string) {
	name := path[len(path)-1]
	// The end of a listing is judged apart. How much a READ gives depends on the
	// size of the file; what the bytes are is compared elsewhere, and strictly.
	if ofMoment(name) && !(name == "eof" && slices.Contains(path, "reply")) || (name == "data" || name == "count") && (c.reading || strings.HasPrefix(path[0], "READ[")) {
		if why := c.moment(); why != "" {
			if !slices.Contains(c.explained, why) {
				c.explained = append(c.explained, why)
			}
			return
		}
	}
	if len(c.different) < maxDifferences {
		c.different = append(c.different, fmt.Sprintf("%s: %s, was %s", strings.Join(path, "."), have, want))
	}
}

// run compares c.want with c.have, which have been filled.
func (c *comparison) run() {
	var path [32]string
	c.level(-1, -1, path[:0], place{directory: c.directory(-1), exclusive: c.exclusive(-1)})
}

// place is what is known of the object that fields are of.
type place struct{ directory, symlink, exclusive bool }

// classOf is the class of a field below its parent.
func (c *comparison) classOf(path []string, name string) class {
	if c.ignore[name] {
		return own
	}
	if len(path) > 0 {
		if k, ok := fields[path[len(path)-1]+"."+name]; ok {
			return k
		}
	}
	return fields[name]
}

func (c *comparison) level(want, have int32, path []string, dir place) {
	first, end := int32(0), int32(len(c.want.nodes))
	if want >= 0 {
		first, end = want+1, c.want.nodes[want].end
	}
	if len(path) >= 31 {
		return
	}
	if first < end && c.want.nodes[first].kind == group && c.isEntry(&c.want.nodes[first]) || c.firstEntry(have) {
		c.entries(want, have, path)
		return
	}
	hint := have + 1
	for i := first; i < end; i = c.want.nodes[i].end {
		n := &c.want.nodes[i]
		if n.name == "lxr_names" {
			if i == c.want.child(want, n.name, -1, -1) {
				c.entries(want, have, path)
			}
			continue
		}
		if n.name == "type" && n.kind == enum {
			dir.directory, dir.symlink = n.num == 2, n.num == 5 // what follows is of that
		}
		if want < 0 && n.index >= 0 {
			dir = place{directory: c.directory(n.index), exclusive: c.exclusive(n.index)}
		}
		k := c.classOf(path, n.name)
		j := c.have.child(have, n.name, n.index, hint)
		if j >= 0 {
			hint = c.have.nodes[j].end
		}
		if k == own {
			continue
		}
		full := append(path, n.name)
		if n.index >= 0 {
			full[len(full)-1] = fmt.Sprintf("%s[%d]", n.name, n.index)
		}
		switch {
		case j < 0:
			c.note(k, full, n, nil, dir)
		case n.kind == group && c.have.nodes[j].kind == group:
			before := len(c.different)
			switch {
			case k == limit:
				if !c.same(i, j) {
					c.note(k, full, n, &c.have.nodes[j], dir)
				}
				continue
			case k == optional && n.name != "attributes":
				// A delegation, for one: of another kind, it is another choice.
				c.level(i, j, full, dir)
				if len(c.different) > before {
					c.different = c.different[:before]
					c.note(k, full, n, &c.have.nodes[j], dir)
				}
				continue
			}
			// What a server may leave out is compared if both have sent it.
			c.level(i, j, full, dir)
		case !n.equal(&c.have.nodes[j]):
			c.note(k, full, n, &c.have.nodes[j], dir)
		}
	}
	// What only the live server has said.
	first, end = int32(0), int32(len(c.have.nodes))
	if have >= 0 {
		first, end = have+1, c.have.nodes[have].end
	}
	hint = want + 1
	for j := first; j < end; j = c.have.nodes[j].end {
		n := &c.have.nodes[j]
		if n.name == "lxr_names" {
			continue
		}
		i := c.want.child(want, n.name, n.index, hint)
		if i >= 0 {
			hint = c.want.nodes[i].end
			continue
		}
		if k := c.classOf(path, n.name); k != own {
			c.note(k, append(path, n.name), nil, n, dir)
		}
	}
}

// isEntry reports whether a node is one of a list whose order the server
// chooses: directory entries, names of extended attributes.
func (c *comparison) isEntry(n *leaf) bool {
	return n.index >= 0 && strings.HasPrefix(n.typ, "entry") || n.name == "lxr_names"
}

func (c *comparison) firstEntry(have int32) bool {
	i := have + 1
	return i < int32(len(c.have.nodes)) && (have < 0 || i < c.have.nodes[have].end) && c.isEntry(&c.have.nodes[i])
}

// entryName is the name of an entry.
func (t *tree) entryName(i int32) string {
	if t.nodes[i].kind != group {
		return string(t.nodes[i].bytes)
	}
	if j := t.child(i, "name", -1, i+2); j >= 0 {
		return string(t.nodes[j].bytes)
	}
	return ""
}

// entries compares lists by name, whatever their order. What stands beside
// them (the end of the list) is up to the caller.
func (c *comparison) entries(want, have int32, path []string) {
	if c.names == nil {
		c.names = map[string]int32{}
	}
	clear(c.names)
	each := func(t *tree, parent int32, f func(i int32)) {
		first, end := int32(0), int32(len(t.nodes))
		if parent >= 0 {
			first, end = parent+1, t.nodes[parent].end
		}
		for i := first; i < end; i = t.nodes[i].end {
			if c.isEntry(&t.nodes[i]) {
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
			c.level(i, j, append(path, strconv.Quote(name)), place{})
		}
	})
	for name := range c.names {
		if name != "." && name != ".." {
			c.extra = append(c.extra, name)
		}
	}
	slices.Sort(c.extra)
}

// same compares all that two nodes hold.
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

// note records a difference; one side may have nothing.
func (c *comparison) note(k class, path []string, want, have *leaf, dir place) {
	name := ""
	if want != nil {
		name = want.name
	} else {
		name = have.name
	}
	switch {
	case slices.Contains(path, "eir_state_protect"):
		c.equivalent[reasonProtection] = true // the plan asks for SP4_NONE
	case k == limit:
		c.equivalent[reasonLimit] = true
	case name == "owner" || name == "owner_group":
		if want == nil || have == nil || sameUser(string(want.bytes), string(have.bytes)) {
			c.equivalent[reasonUsers] = true
		} else {
			c.differs(path, want.value(), have.value())
		}
	case k == optional, (want == nil || have == nil) && underOptional(path):
		c.equivalent[reasonOptional] = true
	case name == "mode" && dir.symlink:
		c.equivalent[reasonLinkMode] = true
	case dir.exclusive && (name == "mode" || name == "size"):
		c.equivalent[reasonExclusive] = true
	case name == "length" && slices.Contains(path, "denied") && want != nil && have != nil && min(want.num, have.num) >= 1<<62:
		c.equivalent[reasonLockEnd] = true
	case dir.directory && (name == "size" || name == "nlink" || name == "numlinks"):
		c.equivalent[reasonDirSize] = true
	default:
		w, h := "absent", "absent"
		if want != nil {
			w = want.value()
		}
		if have != nil {
			h = have.value()
		}
		c.differs(path, w, h)
	}
}

// sameUser compares owners as NFSv4 writes them: a number, or a name with or
// without a domain (RFC 8881, section 5.9). How a server maps names to numbers
// is not known here, but for root.
func sameUser(a, b string) bool {
	a, _, _ = strings.Cut(a, "@")
	b, _, _ = strings.Cut(b, "@")
	number := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	if a == "root" {
		a = "0"
	}
	if b == "root" {
		b = "0"
	}
	return a == b || number(a) != number(b) && a != "0" && b != "0"
}

// underOptional reports whether a place belongs to attributes or a handle that
// a server need not send.
func underOptional(path []string) bool {
	for _, p := range path {
		if p == "attributes" || p == "handle" || p == "obj_attributes" || p == "attrs" {
			return true
		}
	}
	return false
}
