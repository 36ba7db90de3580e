package krb5

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/keytab"
)

// Keytab holds the keys of services.
type Keytab struct {
	entries []entry
}

type entry struct {
	principal string
	kvno      uint32
	key       Key
}

// maxKeytab bounds a keytab in bytes.
const maxKeytab = 1 << 20

// FromEnvironment is the file that KRB5_KTNAME names, as in libkrb5: a file name, with or without
// "FILE:" before it. It is empty if the variable is empty.
func FromEnvironment(value string) (string, error) {
	kind, rest, ok := strings.Cut(value, ":")
	switch {
	case !ok || strings.ContainsRune(kind, '/'):
		return value, nil
	case strings.EqualFold(kind, "FILE") || strings.EqualFold(kind, "WRFILE"):
		return rest, nil
	}
	return "", fmt.Errorf("KRB5_KTNAME: a keytab of type %q cannot be read: only FILE", kind)
}

// LoadKeytab reads a keytab. A "FILE:" before its name is removed.
func LoadKeytab(name string) (*Keytab, error) {
	if rest, ok := strings.CutPrefix(name, "FILE:"); ok {
		name = rest
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxKeytab+1))
	if err != nil {
		return nil, err
	}
	k, err := ParseKeytab(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return k, nil
}

// ParseKeytab reads a keytab of version 1 or 2. Its errors reveal nothing about the contents of the keytab.
func ParseKeytab(b []byte) (*Keytab, error) {
	if len(b) > maxKeytab {
		return nil, fmt.Errorf("larger than the %d bytes that a keytab may have", maxKeytab)
	}
	if len(b) < 2 || b[0] != 5 || b[1] != 1 && b[1] != 2 {
		return nil, errors.New("not a keytab: it does not begin with 05 01 or 05 02")
	}
	var in keytab.Keytab
	if len(b) >= 6 {
		// The error is not returned: it quotes the bytes, which are keys.
		if in.Unmarshal(b) != nil {
			return nil, errors.New("the keytab is damaged or cut short")
		}
	}
	k := &Keytab{}
	for i := range in.Entries {
		e := &in.Entries[i]
		k.entries = append(k.entries, entry{
			principal: strings.Join(e.Principal.Components, "/") + "@" + e.Principal.Realm,
			kvno:      e.KVNO, key: Key{EType(e.Key.KeyType), e.Key.KeyValue},
		})
	}
	if len(k.entries) == 0 {
		return nil, errors.New("the keytab holds no key")
	}
	return k, nil
}

// maxAttempts bounds how many keys are tried on one ticket.
const maxAttempts = 64

// open decrypts a ticket. The names and versions of keys in a keytab are not reliable, so all keys of the
// ticket's type are tried, the likely ones first; the ticket's checksum shows which one is right.
func (k *Keytab) open(principal string, t *encryptedData) ([]byte, bool) {
	attempts := 0
	for likely := 2; likely >= 0; likely-- {
		for i := range k.entries {
			e := &k.entries[i]
			rank := 0
			if e.principal == principal {
				if rank = 1; e.kvno == t.kvno {
					rank = 2
				}
			}
			if rank != likely || e.key.EType != t.etype {
				continue
			}
			if b, ok := e.key.decrypt(t.cipher, usageTicket); ok {
				return b, true
			}
			if attempts++; attempts >= maxAttempts {
				return nil, false
			}
		}
	}
	return nil, false
}

// lacks says why a ticket could not be decrypted.
func (k *Keytab) lacks(principal string, t *encryptedData) string {
	what := fmt.Sprintf("%s (kvno %d, %v)", printable(principal), t.kvno, t.etype)
	versions, types := map[uint32]bool{}, map[EType]bool{}
	exact, same := false, false
	for i := range k.entries {
		e := &k.entries[i]
		if e.principal == principal {
			same = true
			versions[e.kvno], types[e.key.EType] = true, true
			exact = exact || e.kvno == t.kvno && e.key.EType == t.etype
		}
	}
	switch _, err := crypto.GetEtype(int32(t.etype)); {
	case err != nil:
		return "tickets of " + t.etype.String() + " are not supported"
	case exact:
		return "the keytab's key of " + what + " is not the one that the ticket was made with"
	case same && !types[t.etype]:
		return "the keytab has no key of this type for " + what
	case same && !versions[t.kvno]:
		return "the keytab has other versions of the key, none of " + what
	case same:
		return "the keytab has no such key: " + what
	}
	return "the keytab has no key of " + what
}

// printable makes a name from the wire safe to print in a note.
func printable(s string) string {
	if len(s) > 256 {
		s = s[:256] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(s, "?"))
}
