package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/user"
	"strconv"
)

// identity is who the process becomes.
type identity struct {
	name   string
	uid    int
	gid    int
	groups []int // supplementary ones, gid included
}

// process is what the choice depends on.
type process struct {
	uid, euid int
	env       func(string) string
	lookup    func(string) (*user.User, error) // by name
	byID      func(string) (*user.User, error)
	groups    func(*user.User) ([]string, error)
}

func thisProcess() process {
	return process{
		uid: os.Getuid(), euid: os.Geteuid(), env: os.Getenv,
		lookup: user.Lookup, byID: user.LookupId, groups: (*user.User).GroupIds,
	}
}

// nobodyID is the ID of nobody if the system does not know the name. The kernel uses it for whatever it
// cannot map, too.
const nobodyID = 65534

// errNotRoot says that -Z has no effect.
var errNotRoot = errors.New("only root can become another user")

// choose returns the user that the process becomes; nil means no change. Root becomes
//
//   - the user that was named;
//   - who called sudo, doas or pkexec;
//   - the caller of a program that is set-user-ID;
//   - nobody, if no files are to be written. Files that root asks for, in a
//     directory of root usually, no other user could write: then it
//     stays root, without capabilities.
func (p process) choose(named string, writes bool) (*identity, error) {
	if named != "" {
		u, err := p.find(named)
		if err != nil {
			return nil, err
		}
		if p.euid != 0 && u.uid != p.euid {
			return nil, fmt.Errorf("user %s: %w", named, errNotRoot)
		}
		if p.euid != 0 {
			return nil, nil
		}
		return u, nil
	}
	if p.euid != 0 {
		return nil, nil
	}
	if p.uid != 0 {
		return p.byNumber(p.uid, -1)
	}
	if uid, ok := number(p.env("SUDO_UID")); ok && uid != 0 {
		gid, ok := number(p.env("SUDO_GID"))
		if !ok {
			gid = -1
		}
		return p.byNumber(uid, gid)
	}
	if name := p.env("DOAS_USER"); name != "" && name != "root" {
		return p.find(name)
	}
	if uid, ok := number(p.env("PKEXEC_UID")); ok && uid != 0 {
		return p.byNumber(uid, -1)
	}
	if writes {
		return nil, nil
	}
	if u, err := p.lookup("nobody"); err == nil {
		return p.of(u)
	}
	return &identity{name: "nobody", uid: nobodyID, gid: nobodyID, groups: []int{nobodyID}}, nil
}

// number is an ID; -1 stands for "unchanged" in system calls and is not an ID.
func number(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n == math.MaxUint32 {
		return 0, false
	}
	return int(n), true
}

// find looks a user up by name, then by number.
func (p process) find(s string) (*identity, error) {
	u, err := p.lookup(s)
	if err == nil {
		return p.of(u)
	}
	if uid, ok := number(s); ok {
		return p.byNumber(uid, -1)
	}
	return nil, fmt.Errorf("there is no user %s", strconv.Quote(s))
}

// byNumber is the user of a number; one that the system does not know has gid
// only, or the group of the same number if that is -1.
func (p process) byNumber(uid, gid int) (*identity, error) {
	if u, err := p.byID(strconv.Itoa(uid)); err == nil {
		return p.of(u)
	}
	if gid < 0 {
		gid = uid
	}
	return &identity{name: strconv.Itoa(uid), uid: uid, gid: gid, groups: []int{gid}}, nil
}

// of is a user with all groups.
func (p process) of(u *user.User) (*identity, error) {
	uid, ok1 := number(u.Uid)
	gid, ok2 := number(u.Gid)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("user %s: numbers %s:%s", u.Username, u.Uid, u.Gid)
	}
	id := &identity{name: u.Username, uid: uid, gid: gid}
	list, err := p.groups(u)
	if err != nil {
		return nil, fmt.Errorf("groups of user %s: %w", u.Username, err)
	}
	for _, s := range list {
		g, ok := number(s)
		if !ok {
			return nil, fmt.Errorf("user %s: group %s", u.Username, s)
		}
		id.groups = append(id.groups, g)
	}
	return id, nil
}
