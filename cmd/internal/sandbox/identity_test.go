//go:build linux

package sandbox

import (
	"errors"
	"os/user"
	"slices"
	"testing"
)

// fake is a system with three users.
func fake(uid, euid int, env map[string]string) process {
	users := []*user.User{
		{Username: "root", Uid: "0", Gid: "0"},
		{Username: "alice", Uid: "1000", Gid: "100"},
		{Username: "nobody", Uid: "65534", Gid: "65533"},
		{Username: "broken", Uid: "-1", Gid: "7"},
		{Username: "4294967295", Uid: "4294967295", Gid: "4294967295"},
	}
	find := func(is func(*user.User) bool) (*user.User, error) {
		if i := slices.IndexFunc(users, is); i >= 0 {
			return users[i], nil
		}
		return nil, user.UnknownUserError("")
	}
	return process{
		uid: uid, euid: euid, env: func(s string) string { return env[s] },
		lookup: func(name string) (*user.User, error) {
			return find(func(u *user.User) bool { return u.Username == name })
		},
		byID:   func(id string) (*user.User, error) { return find(func(u *user.User) bool { return u.Uid == id }) },
		groups: func(u *user.User) ([]string, error) { return []string{u.Gid, "27"}, nil },
	}
}

func TestChoose(t *testing.T) {
	sudo := map[string]string{"SUDO_UID": "1000", "SUDO_GID": "100"}
	for _, c := range []struct {
		name      string
		uid, euid int
		env       map[string]string
		named     string
		writes    bool
		want      string // "" stays who it is
		uidWant   int
		groups    []int
		fails     bool
	}{
		{name: "ordinary user with a capability", uid: 1000, euid: 1000},
		{name: "ordinary user in the environment of sudo", uid: 1001, euid: 1001, env: sudo},
		{name: "sudo", env: sudo, writes: true, want: "alice", uidWant: 1000, groups: []int{100, 27}},
		{name: "sudo, named", env: sudo, named: "nobody", want: "nobody", uidWant: 65534, groups: []int{65533, 27}},
		{name: "sudo by a user of a directory that is gone", env: map[string]string{"SUDO_UID": "3000", "SUDO_GID": "50"}, want: "3000", uidWant: 3000, groups: []int{50}},
		{name: "sudo without a group", env: map[string]string{"SUDO_UID": "3000"}, want: "3000", uidWant: 3000, groups: []int{3000}},
		{name: "sudo by root, writing", env: map[string]string{"SUDO_UID": "0", "SUDO_GID": "0"}, writes: true},
		{name: "sudo by root, listing", env: map[string]string{"SUDO_UID": "0", "SUDO_GID": "0"}, want: "nobody", uidWant: 65534, groups: []int{65533, 27}},
		{name: "nonsense in the environment", env: map[string]string{"SUDO_UID": "-1"}, want: "nobody", uidWant: 65534, groups: []int{65533, 27}},
		{name: "the number that means unchanged", env: map[string]string{"SUDO_UID": "4294967295"}, want: "nobody", uidWant: 65534, groups: []int{65533, 27}},
		{name: "doas", env: map[string]string{"DOAS_USER": "alice"}, writes: true, want: "alice", uidWant: 1000, groups: []int{100, 27}},
		{name: "pkexec", env: map[string]string{"PKEXEC_UID": "1000"}, writes: true, want: "alice", uidWant: 1000, groups: []int{100, 27}},
		{name: "set-user-ID", uid: 1000, want: "alice", uidWant: 1000, groups: []int{100, 27}},
		{name: "root, writing", writes: true},
		{name: "root, listing", want: "nobody", uidWant: 65534, groups: []int{65533, 27}},
		{name: "root, by number", named: "1000", writes: true, want: "alice", uidWant: 1000, groups: []int{100, 27}},
		{name: "root, by a number that nobody has", named: "4711", writes: true, want: "4711", uidWant: 4711, groups: []int{4711}},
		{name: "root stays root", named: "root", want: "root", groups: []int{0, 27}},
		{name: "misspelt", named: "alcie", fails: true},
		{name: "a user with the number that means unchanged", named: "4294967295", fails: true},
		{name: "a user without a number", named: "broken", fails: true},
		{name: "another user, not root", uid: 1000, euid: 1000, named: "nobody", fails: true},
		{name: "oneself, not root", uid: 1000, euid: 1000, named: "alice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			id, err := fake(c.uid, c.euid, c.env).choose(c.named, c.writes)
			switch {
			case c.fails:
				if err == nil {
					t.Errorf("no error, but %+v", id)
				}
			case err != nil:
				t.Error(err)
			case (id == nil) != (c.want == ""):
				t.Errorf("%+v, want %q", id, c.want)
			case id != nil && (id.name != c.want || id.uid != c.uidWant || !slices.Equal(id.groups, c.groups) || id.gid != c.groups[0]):
				t.Errorf("%+v, want %+v", id, c)
			}
		})
	}
	if _, err := fake(1000, 1000, nil).choose("nobody", true); !errors.Is(err, errNotRoot) {
		t.Error(err)
	}
}
