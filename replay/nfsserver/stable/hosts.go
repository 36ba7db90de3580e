//go:build unix

package stable

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/rpcrdma/toolkit/replay/nfsserver/nlm"
)

// A host that has locks of NLM is a file, too: its address, a byte 0, and its name.

const (
	hosts      = "hosts"
	maxHost    = 64 + 1 + 1024
	startsFile = "starts"
)

func (d *Dir) readHosts() error {
	if err := os.MkdirAll(filepath.Join(d.path, hosts), 0o700); err != nil {
		return err
	}
	if err := d.countStart(); err != nil {
		return err
	}
	names, err := os.ReadDir(filepath.Join(d.path, hosts))
	if err != nil {
		return err
	}
	for _, e := range names[:min(len(names), maxRecords)] {
		if m, ok := d.host(e.Name()); ok {
			d.hosts = append(d.hosts, m)
		} else {
			_ = os.Remove(filepath.Join(d.path, hosts, e.Name()))
		}
	}
	return nil
}

// countStart makes the number of this start, which hosts are told: odd, and larger each
// time (Network Status Monitor).
func (d *Dir) countStart() error {
	path := filepath.Join(d.path, startsFile)
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	n := uint32(1)
	if len(b) == 4 {
		n = (binary.BigEndian.Uint32(b) + 2) & 0x7fffffff
	}
	d.starts = int32(n | 1)
	return write(path, binary.BigEndian.AppendUint32(nil, uint32(d.starts)))
}

func (d *Dir) host(name string) (m nlm.Monitored, ok bool) {
	path := filepath.Join(d.path, hosts, name)
	st, err := os.Lstat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxHost {
		return m, false
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return m, false
	}
	for i, c := range b {
		if c == 0 {
			m.Addr, err = netip.ParseAddr(string(b[:i]))
			m.Name = string(b[i+1:])
			return m, err == nil && name == hostFile(&m)
		}
	}
	return m, false
}

func hostContent(m *nlm.Monitored) []byte {
	return append(append([]byte(m.Addr.String()), 0), m.Name...)
}

func hostFile(m *nlm.Monitored) string {
	sum := sha256.Sum256(hostContent(m))
	return hex.EncodeToString(sum[:])
}

// Starts is the number of this start of the server.
func (d *Dir) Starts() int32 { return d.starts }

// RecoveredHosts are the hosts that may reclaim locks of NLM.
func (d *Dir) RecoveredHosts() []nlm.Monitored { return d.hosts }

// AddHost implements nlm.Stable.
func (d *Dir) AddHost(m *nlm.Monitored) error {
	if !m.Addr.IsValid() {
		return nil // it cannot be told anything
	}
	return write(filepath.Join(d.path, hosts, hostFile(m)), hostContent(m))
}

// RemoveHost implements nlm.Stable.
func (d *Dir) RemoveHost(m *nlm.Monitored) {
	_ = os.Remove(filepath.Join(d.path, hosts, hostFile(m)))
}
