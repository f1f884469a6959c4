package a;

public final class Box<T> {
    private int size = count(3);

    public Box(int size) {
    }

    @Override
    public <K> Map<K, T> get(K key) throws IOException {
        return load(key);
    }
}
