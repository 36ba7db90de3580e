package nfsserver

import "github.com/rpcrdma/toolkit/decode/oncrpc"

// authenticate fills in Cred from the header. If the flavor is not served, it answers the
// call.
//
// AUTH_NONE and AUTH_SYS are served. All others, such as RPCSEC_GSS and AUTH_TLS (RFC
// 9289), are answered with AUTH_BADCRED, as Linux does for a flavor that it lacks: clients
// that try several flavors then try the next one.
func (c *Call) authenticate() bool {
	o := &c.server.opt
	switch c.Flavor = c.Header.Cred.Flavor; c.Flavor {
	case oncrpc.AuthNone:
		c.Cred.UID, c.Cred.GID = o.AnonUID, o.AnonGID
		c.User = o.AnonUID
		return true
	case oncrpc.AuthSys:
	default:
		c.denyAuth(oncrpc.AuthBadCred)
		return false
	}
	if !c.sys.Decode(c.Header.Cred.Body) {
		c.denyAuth(oncrpc.AuthBadCred)
		return false
	}
	if c.Header.Verf.Flavor != oncrpc.AuthNone {
		// RFC 5531, appendix A: the verifier of AUTH_SYS is AUTH_NONE.
		c.denyAuth(oncrpc.AuthBadVerf)
		return false
	}
	c.User = c.sys.UID
	c.Cred.UID, c.Cred.GID, c.Cred.GIDs = c.sys.UID, c.sys.GID, c.sys.GIDs[:c.sys.Count]
	switch {
	case o.Squash == AllSquash, o.Squash == RootSquash && c.Cred.UID == 0:
		c.Cred.UID, c.Cred.GID, c.Cred.GIDs = o.AnonUID, o.AnonGID, nil
	case o.Squash == RootSquash:
		if c.Cred.GID == 0 {
			c.Cred.GID = o.AnonGID
		}
		for i, g := range c.Cred.GIDs {
			if g == 0 {
				c.Cred.GIDs[i] = o.AnonGID
			}
		}
	}
	return true
}

func (c *Call) denyAuth(stat oncrpc.AuthStat) {
	c.deny(oncrpc.Reply{Stat: oncrpc.Denied, Reject: oncrpc.AuthError, AuthStat: stat})
}
