//go:build unix

package stable

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nlm"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What was kept is there for the next server, and for one at a time.
func TestDir(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "state")
	d := open(t, path)
	if len(d.Recovered()) != 0 {
		t.Errorf("%v", d.Recovered())
	}
	if _, err := Open(path); !errors.Is(err, ErrInUse) {
		t.Errorf("opened twice: %v", err)
	}
	long := state.Identity{Minor: true, Owner: strings.Repeat("/x\x00", 300), Verifier: [8]byte{7}}
	short := state.Identity{Verifier: [8]byte{1, 2, 3}}
	same := state.Identity{Minor: true, Verifier: [8]byte{1, 2, 3}}
	for _, id := range []*state.Identity{&long, &short, &same, &short} {
		if err := d.Add(id); err != nil {
			t.Fatal(err)
		}
	}
	d.Remove(&same)
	d.Remove(&same)
	key, owner := d.Key(), d.Owner()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = open(t, path)
	if got := d.Recovered(); len(got) != 2 || !slices.Contains(got, long) || !slices.Contains(got, short) || d.Key() != key || d.Owner() != owner {
		t.Errorf("%v", got)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	// What a crash, or somebody, has left behind is no client.
	for name, content := range map[string]string{".new-1": "", "short": "x", file(&same): "\x01other", file(&long)[:10]: string(content(&long))} {
		if err := os.WriteFile(filepath.Join(path, clients, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(path, clients, "link")); err != nil {
		t.Fatal(err)
	}
	d = open(t, path)
	if len(d.Recovered()) != 2 {
		t.Errorf("%v", d.Recovered())
	}
	if left, err := os.ReadDir(filepath.Join(path, clients)); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
	_ = d.Close()
	if err := os.WriteFile(filepath.Join(path, "handle-key"), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "handle-key") {
		t.Errorf("a damaged key: %v", err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

// Hosts with locks are there for the next server, which has a higher number.
func TestHosts(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	if d.Starts() != 1 || len(d.RecoveredHosts()) != 0 {
		t.Errorf("start %d, %v", d.Starts(), d.RecoveredHosts())
	}
	one := nlm.Monitored{Addr: netip.MustParseAddr("192.0.2.7"), Name: "one"}
	two := nlm.Monitored{Addr: netip.MustParseAddr("2001:db8::7"), Name: strings.Repeat("/\x00", 512)}
	gone := nlm.Monitored{Addr: one.Addr, Name: "gone"}
	for _, m := range []*nlm.Monitored{&one, &two, &gone, &one, {Name: "nowhere"}} {
		if err := d.AddHost(m); err != nil {
			t.Fatal(err)
		}
	}
	d.RemoveHost(&gone)
	_ = d.Close()
	for name, content := range map[string]string{".new-1": "", "short": "192.0.2.7", hostFile(&gone): "192.0.2.7\x00other"} {
		if err := os.WriteFile(filepath.Join(path, hosts, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d = open(t, path)
	if got := d.RecoveredHosts(); len(got) != 2 || !slices.Contains(got, one) || !slices.Contains(got, two) || d.Starts() != 3 {
		t.Errorf("start %d, %v", d.Starts(), got)
	}
	if left, err := os.ReadDir(filepath.Join(path, hosts)); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
	_ = d.Close()
}
