package login

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/cryptobyte"

	"github.com/rpcrdma/toolkit/decode/krb5"
)

// maxCache bounds a credential cache in bytes.
const maxCache = 4 << 20

// cache is a credential cache in a file.
type cache struct {
	client  krb5.Principal
	entries []entry
}

// entry is a ticket in a cache.
type entry struct {
	client, server krb5.Principal
	key            krb5.Key
	begin, end     time.Time
	message        []byte
}

// cacheFile is the file that the name of a cache stands for, as in libkrb5.
func cacheFile(name string) (string, error) {
	kind, rest, ok := strings.Cut(name, ":")
	switch {
	case !ok || strings.ContainsRune(kind, '/'):
		return name, nil
	case strings.EqualFold(kind, "FILE"):
		return rest, nil
	}
	return "", fmt.Errorf("a credential cache of type %s cannot be read: only FILE (kinit -c FILE:/path)", kind)
}

func loadCache(name string) (*cache, error) {
	file, err := cacheFile(name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCache+1))
	if err != nil {
		return nil, err
	}
	c, err := parseCache(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

var errCache = errors.New("the credential cache is damaged or cut short")

// parseCache reads a credential cache of version 3 or 4, which libkrb5 has written for twenty
// years. The library's reader does not check lengths, so it is not used. Errors quote nothing,
// since the file holds keys.
func parseCache(b []byte) (*cache, error) {
	if len(b) > maxCache {
		return nil, fmt.Errorf("larger than the %d bytes that a credential cache may have", maxCache)
	}
	s := cryptobyte.String(b)
	var version uint16
	if !s.ReadUint16(&version) || version != 0x0503 && version != 0x0504 {
		return nil, errors.New("not a credential cache: it does not begin with 05 03 or 05 04")
	}
	if version == 0x0504 {
		var header cryptobyte.String
		if !s.ReadUint16LengthPrefixed(&header) {
			return nil, errCache
		}
	}
	c := &cache{}
	if !readPrincipal(&s, &c.client) {
		return nil, errCache
	}
	for !s.Empty() {
		var e entry
		if !e.read(&s, version == 0x0503) {
			return nil, errCache
		}
		c.entries = append(c.entries, e)
	}
	return c, nil
}

func readData(s *cryptobyte.String, out *[]byte) bool {
	var n uint32
	return s.ReadUint32(&n) && uint64(n) <= uint64(len(*s)) && s.ReadBytes(out, int(n))
}

// maxParts bounds the components of a name.
const maxParts = 64

func readPrincipal(s *cryptobyte.String, p *krb5.Principal) bool {
	var kind, n uint32
	var b []byte
	if !s.ReadUint32(&kind) || !s.ReadUint32(&n) || n > maxParts || !readData(s, &b) {
		return false
	}
	p.Type, p.Realm = int32(kind), string(b)
	for range n {
		if !readData(s, &b) {
			return false
		}
		p.Parts = append(p.Parts, string(b))
	}
	return true
}

func (e *entry) read(s *cryptobyte.String, twice bool) bool {
	var kind uint16
	if !readPrincipal(s, &e.client) || !readPrincipal(s, &e.server) || !s.ReadUint16(&kind) || twice && !s.ReadUint16(&kind) {
		return false
	}
	e.key.EType = krb5.EType(int16(kind))
	var fixed, skipped []byte
	if !readData(s, &e.key.Value) || !s.ReadBytes(&fixed, 4*4+1+4) {
		return false
	}
	at := func(i int) time.Time { return time.Unix(int64(binary.BigEndian.Uint32(fixed[i:])), 0) }
	e.begin, e.end = at(4), at(8)
	if e.begin.Unix() == 0 {
		e.begin = at(0)
	}
	for range 2 { // addresses, authorization data
		var n uint32
		if !s.ReadUint32(&n) {
			return false
		}
		for range n { // each takes six bytes at least, so this ends
			if !s.Skip(2) || !readData(s, &skipped) {
				return false
			}
		}
	}
	return readData(s, &e.message) && readData(s, &skipped)
}

// find is the ticket for a service that is valid longest.
func (c *cache) find(server *krb5.Principal, now time.Time) *entry {
	var best *entry
	for i := range c.entries {
		e := &c.entries[i]
		if e.server.Name() != server.Name() || server.Realm != "" && e.server.Realm != server.Realm || !now.Before(e.end) {
			continue
		}
		if best == nil || e.end.After(best.end) {
			best = e
		}
	}
	return best
}
