// Package gss is the client's side of RPCSEC_GSS version 1 with Kerberos (RFC 2203, RFC
// 4121): sec=krb5, krb5i and krb5p.
//
// A Requester wraps the Requester of a transport. It takes calls with AUTH_SYS or AUTH_NONE,
// replaces their credentials, protects their arguments, and returns replies whose verifiers and
// results it has checked and decrypted. The layers above, including the guard of a replay, see
// plain calls and plain replies.
//
// With integrity or privacy nothing is eligible for direct data placement, as in Linux:
// arguments and results are one opaque, which travels inline or, if it is too long, in a
// Read chunk at position zero and in the Reply chunk (RFC 8166, section 3.5).
package gss
