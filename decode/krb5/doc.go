// Package krb5 decrypts messages that RPCSEC_GSS protects with Kerberos (RFC 2203, RFC 4121),
// given the keytab of the service: it learns the keys of contexts from the tokens of their
// creation, checks the MICs of headers and of krb5i bodies, and decrypts krb5p bodies. It is also
// both sides of a context (Session): Request and Keytab.Accept create one, KDCRequest obtains the
// ticket for it.
//
//	keytab ─► ticket in the AP-REQ ─► session key ─► subkeys of AP-REQ and AP-REP ─► MIC and Wrap tokens
//
// Contexts is an rpc.Unwrapper: set it as rpc.View.Unwrap, one for all Views of a
// capture. No other package of decode imports this one, so programs that do not need Kerberos do
// not contain it.
//
// Encryption types are those with AES: RFC 3962 (17, 18) and RFC 8009 (19, 20).
// Tickets may also be encrypted with des3-cbc-sha1 and rc4-hmac; contexts may not.
package krb5
