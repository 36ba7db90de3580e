package accept

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	osuser "os/user"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/decode/krb5"
)

// User is the user that a principal maps to.
type User struct {
	UID, GID uint32
	GIDs     []uint32 // 16 at most
}

const nobody = 65534

// Nobody is the user of unknown principals.
var Nobody = User{UID: nobody, GID: nobody}

// maxGIDs is how many groups an AUTH_SYS credential can have.
const maxGIDs = 16

// Users finds users. Its methods may be called from any goroutine.
type Users interface {
	// Lookup finds the user that a principal is; realm is the service's.
	Lookup(p *krb5.Principal, realm string) User
	// ID finds the number of a user or a group by the name that clients send as owner of a file.
	ID(name string, group bool) (uint32, bool)
}

// Local are the users of this machine. A principal is one of them if it is a plain name
// in the realm of the service: another realm may give any name to anybody.
type Local struct{}

// Lookup implements Users.
func (Local) Lookup(p *krb5.Principal, realm string) User {
	if p.Realm != realm || len(p.Parts) != 1 || len(p.Parts[0]) > 255 {
		return Nobody
	}
	if _, err := strconv.ParseUint(p.Parts[0], 10, 64); err == nil {
		return Nobody // some systems accept a number as the id
	}
	u, err := osuser.Lookup(p.Parts[0])
	if err != nil || u.Username != p.Parts[0] {
		return Nobody
	}
	uid, err1 := id(u.Uid)
	gid, err2 := id(u.Gid)
	if err1 != nil || err2 != nil {
		return Nobody
	}
	out := User{UID: uid, GID: gid}
	list, err := u.GroupIds()
	if err != nil {
		return out
	}
	for _, s := range list {
		if g, err := id(s); err == nil && g != gid && len(out.GIDs) < maxGIDs {
			out.GIDs = append(out.GIDs, g)
		}
	}
	return out
}

// ID implements Users.
func (Local) ID(name string, group bool) (uint32, bool) {
	var s string
	if group {
		g, err := osuser.LookupGroup(name)
		if err != nil || g.Name != name {
			return 0, false
		}
		s = g.Gid
	} else {
		u, err := osuser.Lookup(name)
		if err != nil || u.Username != name {
			return 0, false
		}
		s = u.Uid
	}
	n, err := id(s)
	return n, err == nil
}

// List are users by the names of principals.
type List struct {
	users map[string]User
	names map[string]User // by principals' names alone, the first of each
}

// Lookup implements Users.
func (l *List) Lookup(p *krb5.Principal, _ string) User {
	if u, ok := l.users[p.String()]; ok {
		return u
	}
	return Nobody
}

// ID implements Users. Groups are named after the users whose first group they are.
func (l *List) ID(name string, group bool) (uint32, bool) {
	u, ok := l.names[name]
	if group {
		return u.GID, ok
	}
	return u.UID, ok
}

// Limits of a list of users.
const (
	maxUsers = 1 << 16
	maxLine  = 4096
)

// LoadList reads a file of users, see ParseList.
func LoadList(name string) (*List, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l, err := ParseList(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return l, nil
}

// ParseList reads lines of a principal with its realm, a user id, a group id, and further
// group ids, with spaces between them. Empty lines, and what follows a #, are ignored.
func ParseList(r io.Reader) (*List, error) {
	l := &List{users: map[string]User{}, names: map[string]User{}}
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	n := 0
	for s.Scan() {
		n++
		text, _, _ := strings.Cut(s.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		p, u, err := parseUser(words)
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", n, err)
		case len(l.users) >= maxUsers:
			return nil, fmt.Errorf("line %d: there are more than %d users", n, maxUsers)
		}
		if _, ok := l.users[p]; ok {
			return nil, fmt.Errorf("line %d: %s is there twice", n, p)
		}
		if name, _, _ := strings.Cut(p, "@"); !strings.ContainsRune(name, '/') {
			if _, ok := l.names[name]; !ok {
				l.names[name] = u
			}
		}
		l.users[p] = u
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d: longer than %d bytes", n+1, maxLine)
	}
	return l, s.Err()
}

func parseUser(words []string) (string, User, error) {
	var u User
	p, err := krb5.ParsePrincipal(words[0])
	if err != nil {
		return "", u, err
	}
	if p.Realm == "" || len(words) < 3 {
		return "", u, errors.New("a line is a principal with its realm, a user id, a group id, and more group ids if there are any: alice@EXAMPLE.ORG 1000 1000")
	}
	if len(words) > 3+maxGIDs {
		return "", u, fmt.Errorf("more than %d further groups", maxGIDs)
	}
	for i, w := range words[1:] {
		n, err := id(w)
		if err != nil {
			return "", u, fmt.Errorf("%q is not a user or group id", w)
		}
		switch i {
		case 0:
			u.UID = n
		case 1:
			u.GID = n
		default:
			u.GIDs = append(u.GIDs, n)
		}
	}
	return p.String(), u, nil
}

func id(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err == nil && n == math.MaxUint32 {
		err = errors.New("not an id")
	}
	return uint32(n), err
}
