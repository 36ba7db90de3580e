//go:build unix

// Package stable keeps on disk what an NFS server has to remember when it is started
// again: the key of its handles, the name that NFSv4 clients know it by, and which
// clients hold opens, locks or delegations (RFC 7530, section 9.6.3.4; RFC 8881, section
// 8.4.2.1), among them the NFSv3 hosts with locks, and how often it was started. It does
// not keep what they hold: they tell, in the grace period.
//
// A record is a file whose name is a hash of the client, written before the client gets
// its first open and removed when it has none any more because of the server. So a
// client that the server has given up cannot reclaim after a restart.
package stable

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nlm"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Dir is a directory with the state of one server.
type Dir struct {
	path      string
	lock      *os.File
	key       store.Key
	owner     string
	recovered []state.Identity
	hosts     []nlm.Monitored
	starts    int32
}

var (
	_ state.Stable = (*Dir)(nil)
	_ nlm.Stable   = (*Dir)(nil)
)

// ErrInUse says that another server has the directory.
var ErrInUse = errors.New("another server uses this state")

const (
	clients = "clients"
	// Records beyond these are not read: a server has fewer clients.
	maxRecords = 1 << 16
	maxRecord  = 1 + 8 + 1024
)

// Open opens a directory, or makes it. It fails with ErrInUse while another process has
// it open.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(filepath.Join(path, clients), 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", path, ErrInUse)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d := &Dir{path: path, lock: lock}
	if err := d.read(); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return d, nil
}

func (d *Dir) read() error {
	key, err := d.secret("handle-key")
	if err != nil {
		return err
	}
	copy(d.key[:], key)
	owner, err := d.secret("server-id")
	if err != nil {
		return err
	}
	d.owner = "rpcrdma-toolkit " + hex.EncodeToString(owner)
	names, err := os.ReadDir(filepath.Join(d.path, clients))
	if err != nil {
		return err
	}
	for _, e := range names[:min(len(names), maxRecords)] {
		if id, ok := d.record(e.Name()); ok {
			d.recovered = append(d.recovered, id)
		} else {
			// Cut off when it was written: that client has no open yet.
			_ = os.Remove(filepath.Join(d.path, clients, e.Name()))
		}
	}
	return d.readHosts()
}

// secret reads a file of 16 random bytes, or makes it.
func (d *Dir) secret(name string) ([]byte, error) {
	path := filepath.Join(d.path, name)
	b, err := os.ReadFile(path)
	switch {
	case err == nil && len(b) == 16:
		return b, nil
	case err == nil:
		return nil, fmt.Errorf("%s: %d bytes instead of 16: remove it to start anew", path, len(b))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	b = make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return b, write(path, b)
}

// write makes a file that is complete or not there.
func write(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// record reads the record of a client.
func (d *Dir) record(name string) (id state.Identity, ok bool) {
	path := filepath.Join(d.path, clients, name)
	st, err := os.Lstat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() < 9 || st.Size() > maxRecord {
		return id, false
	}
	b, err := os.ReadFile(path)
	if err != nil || len(b) < 9 || b[0] > 1 {
		return id, false
	}
	id.Minor, id.Owner = b[0] == 1, string(b[9:])
	copy(id.Verifier[:], b[1:])
	return id, name == file(&id)
}

func content(id *state.Identity) []byte {
	b := []byte{0}
	if id.Minor {
		b[0] = 1
	}
	b = append(b, id.Verifier[:]...)
	return append(b, id.Owner...)
}

func file(id *state.Identity) string {
	sum := sha256.Sum256(content(id))
	return hex.EncodeToString(sum[:])
}

// Key is the key of the handles.
func (d *Dir) Key() store.Key { return d.key }

// Owner is the name of the server (nfs4.Options.Owner).
func (d *Dir) Owner() string { return d.owner }

// Recovered are the clients that may reclaim.
func (d *Dir) Recovered() []state.Identity { return d.recovered }

// Add implements state.Stable.
func (d *Dir) Add(id *state.Identity) error {
	path := filepath.Join(d.path, clients, file(id))
	err := write(path, content(id))
	if errors.Is(err, fs.ErrNotExist) {
		// Somebody has removed the directory: clients shall not suffer for it now.
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = write(path, content(id))
		}
	}
	return err
}

// Remove implements state.Stable.
func (d *Dir) Remove(id *state.Identity) { _ = os.Remove(filepath.Join(d.path, clients, file(id))) }

// Close lets another process have the directory.
func (d *Dir) Close() error { return d.lock.Close() }
