package mutantstore

import (
	"bytes"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

var otherKinds = []Kind{
	{"access-all", "ACCESS gives every right", func(m *Store) {
		m.access = func(want, given store.AccessMask) store.AccessMask {
			if want != given {
				m.hit()
			}
			return want
		}
	}},
	{"access-none", "ACCESS gives no right to write", func(m *Store) {
		m.access = func(_, given store.AccessMask) store.AccessMask {
			const none = store.AccessModify | store.AccessExtend
			if given&none != 0 {
				m.hit()
			}
			return given &^ none
		}
	}},
	{"lost-commit", "COMMIT does nothing", func(m *Store) {
		m.commit = func(_ *store.Cred, h store.Handle, _, _ uint64, w *store.Wcc) error {
			m.hit()
			return m.unchanged(h, w)
		}
	}},
	{"new-verifier", "the write verifier changes without a restart", func(m *Store) { m.restart = true }},
	{"lost-xattr", "SETXATTR does nothing", func(m *Store) {
		m.xset = func(_ *store.Cred, h store.Handle, _, _ []byte, _ store.XattrMode, w *store.Wcc) error {
			m.hit()
			return m.unchanged(h, w)
		}
	}},
	{"wrong-xattr", "the value of an extended attribute is wrong", func(m *Store) {
		m.xget = func(b []byte) []byte {
			if len(b) == 0 {
				return b
			}
			m.hit()
			return changed(b, func(b []byte) { b[0] ^= 1 })
		}
	}},
	{"kept-xattr", "REMOVEXATTR does nothing", func(m *Store) {
		m.xremove = func(_ *store.Cred, h store.Handle, _ []byte, w *store.Wcc) error {
			m.hit()
			return m.unchanged(h, w)
		}
	}},
	{"misspelt-xattr", "names of extended attributes are listed wrongly", func(m *Store) {
		m.xlist = func(f func(name []byte) bool) func(name []byte) bool {
			return func(name []byte) bool {
				m.hit()
				return f(append(bytes.Clone(name), '~'))
			}
		}
	}},
	{"lost-acl", "setting an access control list does nothing", func(m *Store) {
		m.acl = func(_ *store.Cred, h store.Handle, _, _ *store.ACL, w *store.Wcc) error {
			m.hit()
			return m.unchanged(h, w)
		}
	}},
}
