package state

import "github.com/rpcrdma/toolkit/decode/nfs/nfs4"

// file is what clients hold of one file.
type file struct {
	key   Key
	opens map[*open]struct{}
	// How many opens have each bit of share access and share deny.
	accesses, denies [2]int
	locks            ranges
	delegations      map[*delegation]struct{}
	outside          int // Outsiders that hold something
}

// count adds n to the file's counts for an open's bits.
func (f *file) count(access, deny uint32, n int) {
	for i := range f.accesses {
		f.accesses[i] += n * int(access>>i&1)
		f.denies[i] += n * int(deny>>i&1)
	}
}

// conflicts reports whether an open forbids access or deny. An open of the same owner is no
// exception (RFC 8881, section 9.7).
func (f *file) conflicts(access, deny uint32) bool {
	for i := range f.accesses {
		if access>>i&1 != 0 && f.denies[i] > 0 || deny>>i&1 != 0 && f.accesses[i] > 0 {
			return true
		}
	}
	return false
}

// delegatedTo reports whether a client other than by has a delegation that conflicts with reading
// or writing the file.
func (f *file) delegatedTo(by *Client, write bool) bool {
	for d := range f.delegations {
		if d.client != by && (write || d.write) {
			return true
		}
	}
	return false
}

// openForOthers reports whether a client other than c has the file open for writing, or, if all
// is set, at all.
func (f *file) openForOthers(c *Client, all bool) bool {
	if !all && f.accesses[1] == 0 {
		return false
	}
	for o := range f.opens {
		if o.client != c && (all || o.access&nfs4.OPEN4_SHARE_ACCESS_WRITE != 0) {
			return true
		}
	}
	return false
}

// files are the files of which somebody holds something.
type files struct {
	section *section
	by      map[Key]*file
	hold    func(Key) error // Options.Hold, Unhold
	unhold  func(Key)
}

// get finds or makes a file.
func (fs *files) get(key Key) *file {
	f := fs.by[key]
	if f == nil {
		f = &file{key: key, opens: map[*open]struct{}{}}
		fs.by[key] = f
	}
	return f
}

// acquire begins the hold of an open or a delegation on a file; release ends it.
func (fs *files) acquire(key Key) error {
	if fs.hold == nil {
		return nil
	}
	return fs.hold(key)
}

func (fs *files) release(f *file) {
	fs.forget(f)
	if fs.unhold != nil {
		fs.section.after(func() { fs.unhold(f.key) })
	}
}

// forget forgets a file that nobody holds.
func (fs *files) forget(f *file) {
	if len(f.opens) == 0 && len(f.delegations) == 0 && f.outside == 0 {
		delete(fs.by, f.key)
	}
}
