// Package accept is the server's side of RPCSEC_GSS version 1 with Kerberos (RFC 2203,
// RFC 4121). A Handler stands between a transport and a server of RPC programs: it
// creates contexts, checks and opens calls, and protects replies.
//
// What is behind it sees calls of AUTH_SYS, with the user that a principal stands for,
// and Identified exchanges, which tell the flavor that was used and tell principals
// apart. Calls of other flavors pass unchanged.
package accept
