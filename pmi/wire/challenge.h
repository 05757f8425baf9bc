#ifndef PMI_WIRE_CHALLENGE_H_
#define PMI_WIRE_CHALLENGE_H_

#include <string>

namespace weft::pmi {

// PMI-2's authtype=challenge-sha256. The launcher sends a random number in decimal. The rank answers with SHA-256 of
// the shared secret followed by that number, in hexadecimal digits. (The draft does not define the details, and no
// other launcher implements this method.)
inline constexpr char kChallengeMethod[] = "challenge-sha256";

std::string NewChallenge();
std::string ProofFor(const std::string& secret, const std::string& challenge);
// Compares in constant time.
bool ProvesSecret(const std::string& proof, const std::string& secret, const std::string& challenge);

}  // namespace weft::pmi

#endif  // PMI_WIRE_CHALLENGE_H_
