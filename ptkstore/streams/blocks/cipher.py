"""AES-256-GCM under the key of one block, for messages in one piece and for long ones as they
come.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.ciphers import AEADEncryptionContext, Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["MAC_BYTES", "BlockCipher"]

MAC_BYTES = 16


class BlockCipher:
    """The cipher of one block.

    What `encryptor` makes, followed by its ``tag``, is what ``whole`` decrypts.
    """

    def __init__(self, key: bytes) -> None:
        """Keep the key, 32 bytes."""
        self.whole = AESGCM(key)
        self._algorithm = algorithms.AES256(key)

    def encryptor(self, nonce: bytes, bound: bytes) -> AEADEncryptionContext:
        """Encrypt one message piece by piece, bound to the associated data.

        The nonce must be fresh.
        """
        made: AEADEncryptionContext = Cipher(self._algorithm, modes.GCM(nonce)).encryptor()
        made.authenticate_additional_data(bound)
        return made
